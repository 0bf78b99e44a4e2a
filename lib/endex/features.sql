-- One row per line of a file of JSON lines, in its order, with the features of a comment.
-- Every field is read as text: the types of most changed over the years. A line that is no JSON
-- object, or no comment, gives a row whose id is missing. The size of an object is that of
-- `lib.endex.reddit.MAX_LINE`: blocks of the default (16 MiB) leave the processor's cache before they
-- are worked on.
-- parent (missing for an answer to a submission) and link (the thread) lose their prefixes; created
-- and retrieved are seconds since 1970; score is votes up minus votes down, missing while hidden;
-- controversial and edited are missing where the source does not carry them;
-- usable: text and author are there, and the author is no known bot; source: the dump.

select case when body is not null and parent_id is not null then id end as id,
       case when starts_with(parent_id, 't1_') then substr(parent_id, 4) end as parent,
       case when starts_with(link_id, 't3_') then substr(link_id, 4) else link_id end as link,
       $source as source,
       subreddit,
       try_cast(try_cast(created_utc as double) as bigint) as created,
       try_cast(try_cast(retrieved_on as double) as bigint) as retrieved,
       case when score_hidden is distinct from 'true'
            then try_cast(try_cast(score as double) as bigint) end as score,
       controversiality in ('1', 'true') as controversial,
       lower(edited) not in ('false', '0', '0.0', '') as edited,
       coalesce(body not in ('[deleted]', '[removed]', ''), false)
           and coalesce(author <> '[deleted]' and not list_contains($bots, author), false)
           as usable,
       coalesce(contains(body, '&gt;') or starts_with(body, '>')
           or contains(body, chr(10) || '>'), false) as quote,
       body
from read_json(
    $file,
    format = 'newline_delimited',
    ignore_errors = true,
    maximum_object_size = 4194304,
    columns = {
        id: 'varchar', parent_id: 'varchar', link_id: 'varchar', subreddit: 'varchar',
        author: 'varchar', body: 'varchar', score: 'varchar', score_hidden: 'varchar',
        controversiality: 'varchar', edited: 'varchar', created_utc: 'varchar',
        retrieved_on: 'varchar'
    }
)
