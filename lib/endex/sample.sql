-- RED: as many engaging as non-engaging posts, drawn by md5 of seed and id, with their texts.
-- Reads `posts` (made by engagement.sql), `comments` and `settings`.

with

ordered as (
    select posts.*,
           row_number() over (partition by label order by draw, id)          as place
    from posts
    where label is not null
),

smaller as (
    select min(n) as n
    from (select label, count(*) as n from ordered group by label) sizes
),

drawn as (
    select ordered.* from ordered cross join smaller cross join settings
    where place <= n and place <= cap
),

-- Only these texts are needed: reading all of them takes longer than all the rest.
texts as (
    select id, body from comments
    where id in (select id from drawn union select parent from drawn)
)

select drawn.id, drawn.parent, drawn.link, drawn.source, drawn.subreddit, drawn.label,
       drawn.endex, drawn.z, drawn.n_re, drawn.n_be, drawn.n_ae, drawn.n_ee, drawn.draw,
       above.body as context, own.body as response
from drawn
join texts own   on own.id = drawn.id
join texts above on above.id = drawn.parent
order by drawn.label desc, drawn.draw, drawn.id
