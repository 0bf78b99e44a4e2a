-- Comments left after each condition of engagement.sql, tried in this order, and lost at each, by
-- part: of all comments, or of those of one source or one forum.
-- Reads `comments`, `comments_by_part` (the same with a column part), `emotions` and `settings`.

with

replies as (
    select parent                                           as id,
           count(*)                                         as n,
           count(case when usable then tokens end)          as readable,
           count(case when usable then ee end)              as with_ee
    from comments left join emotions using (id)
    where parent is not null
    group by parent
),

last_condition as (
    select post.part,
           case when post.parent is null                                           then 0
                when parent.id is null                                             then 1
                when not (post.usable and parent.usable)                           then 2
                when post.quote or parent.quote                                    then 3
                when below.n is null                                               then 4
                when below.readable = 0 or (below.with_ee = 0 and w_ee > 0)        then 5
                when toxicity_above is not null and not coalesce(
                     post.toxicity <= toxicity_above
                     and parent.toxicity <= toxicity_above, false)                 then 6
                when post.score is null or parent.score is null                    then 7
                when 2 * beside.n + parent.score <= 0                              then 8
                when created_before is not null and post.created is null           then 9
                when created_before is not null and post.created >= created_before then 10
                else 11 end                                                        as passed
    from comments_by_part post
    cross join settings
    left join comments parent on parent.id = post.parent
    left join replies below   on below.id = post.id
    left join replies beside  on beside.id = post.parent
),

conditions as (
    select 0 as place, 'comment' as condition, true as applied from settings
    union all select 1, 'answers another comment', true from settings
    union all select 2, 'parent in the data', true from settings
    union all select 3, 'both texts usable', true from settings
    union all select 4, 'neither text quotes', true from settings
    union all select 5, 'has a reply', true from settings
    union all select 6, 'has a readable reply', true from settings
    union all select 7, 'neither text toxic', toxicity_above is not null from settings
    union all select 8, 'votes known', true from settings
    union all select 9, 'popularity value above 0', true from settings
    union all select 10, 'time known', created_before is not null from settings
    union all select 11, 'not of the last days', created_before is not null from settings
),

-- Before the join: a join on `passed` would try every comment at every condition.
leaving as (
    select part, passed, count(*) as n from last_condition group by part, passed
),

parts as (
    select distinct part from leaving
),

counted as (
    select parts.part, place, condition, applied, coalesce(n, 0) as n
    from conditions cross join parts
    left join leaving on passed = place and leaving.part = parts.part
)

select part, condition,
       cast(sum(n) over (partition by part order by place desc) as bigint) as comments,
       lag(n) over (partition by part order by place)       as lost,
       applied
from counted
order by part, place
