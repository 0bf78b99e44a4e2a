-- RED: as many engaging as non-engaging posts, drawn by md5 of seed and id, with their texts.
-- Reads `posts` (made by posts.sql), `comments` and `settings`.

with

drawn as (
    select posts.*,
           row_number() over (partition by label order by draw, id)          as place
    from posts
    where label is not null
),

smaller as (
    select min(n) as n
    from (select label, count(*) as n from drawn group by label) sizes
)

select drawn.id, drawn.parent, drawn.link, drawn.subreddit, drawn.label,
       drawn.endex, drawn.z, drawn.n_re, drawn.n_be, drawn.n_ae, drawn.n_ee, drawn.draw,
       parent.body as context, post.body as response
from drawn
cross join smaller
cross join settings
join comments post   on post.id = drawn.id
join comments parent on parent.id = drawn.parent
where place <= n and place <= cap
order by drawn.label desc, drawn.draw, drawn.id
