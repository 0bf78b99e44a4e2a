-- Engagement of Reddit posts: EnDex, section 2 and appendix A.2, one equation per step.
-- Reads `comments` (one row per comment), `emotions` (id and ee of the replies that have one) and
-- `settings` (one row of parameters).
-- Plain SQL that DuckDB and Spark run unchanged.

with

-- What each comment received, over ALL its answers; their texts count where they are usable.
-- t: content words of the longest answer; e: edited answers (missing where the source has no edits);
-- ee: positive emotion (0-1).
reactions as (
    select parent                                           as id,
           count(*)                                         as replies,
           cast(sum(case when edited then 1 when not edited then 0 end) as bigint) as e,
           max(case when usable then tokens end)            as t,
           avg(case when usable then ee end)                as ee_mean,
           max(case when usable then ee end)                as ee_max
    from comments left join emotions using (id)
    where parent is not null
    group by parent
),

-- Pairs of a post (theta) and the comment it answers (sigma), with what each received.
-- A post without a reply is no candidate: a choice of ours, which the paper does not state.
pairs as (
    select post.id, post.parent, post.link, post.source, post.subreddit, post.created,
           post.score, post.controversial, post.usable, post.quote, post.toxicity,
           parent.score     as parent_score,
           parent.usable    as parent_usable,
           parent.quote     as parent_quote,
           parent.toxicity  as parent_toxicity,
           below.replies, below.e, below.t, below.ee_mean, below.ee_max,
           beside.replies   as parent_replies
    from comments post
    join comments parent  on parent.id = post.parent
    join reactions below  on below.id = post.id
    join reactions beside on beside.id = parent.id
),

-- Appendix A.1: conversational, not toxic, text there on both sides.
-- Equation 1: popularity value, 2 * replies + votes of the parent; without exposure no ratio.
-- BE is 0 under a controversy flag, and never below 0, where x / (x + alpha) has a pole.
-- Where a source carries no flags or no edits, BE and AE are made of what it has.
eligible as (
    select id, parent, link, source, subreddit, created, replies, e, t,
           replies                                                           as re,
           case when controversial or score < 0 then 0 else score end        as be,
           t + 10 * coalesce(e, 0)                                           as ae,
           case when ee_aggregate = 'max' then ee_max else ee_mean end       as ee,
           2 * parent_replies + parent_score                                 as pv
    from pairs cross join settings
    where usable and parent_usable
      and not quote and not parent_quote
      and (toxicity_above is null
           or (toxicity <= toxicity_above and parent_toxicity <= toxicity_above))
      and t is not null
      and (ee_mean is not null or w_ee = 0)
      and score is not null
      and 2 * parent_replies + parent_score > 0
      and (created_before is null or created < created_before)
),

-- The medians that the ratios of equations 2, 5 and 6 refer to.
medians as (
    select median(pv) as m_pv, median(re) as m_re, median(be) as m_be from eligible
),

-- Equations 2, 5 and 6: raw score * (1 + reply rate relative to the typical reply rate).
adjusted as (
    select eligible.*,
           re + m_pv / nullif(m_re, 0) * re / pv * re                        as pvre,
           be + m_pv / nullif(m_be, 0) * be / pv * be                        as pvbe
    from eligible cross join medians
),

-- The alphas of the footnote, or, where a setting is missing, the median of the dimension.
alphas as (
    select coalesce(max(alpha_re), median(pvre))                             as a_re,
           coalesce(max(alpha_be), median(pvbe))                             as a_be,
           coalesce(max(alpha_ae), median(ae))                               as a_ae
    from adjusted cross join settings
),

-- Equation 8, the monotone submodular normalization: x / (x + alpha) brings each dimension to the
-- scale 0-1.
normalised as (
    select adjusted.*,
           pvre / (pvre + a_re)                                              as n_re,
           pvbe / (pvbe + a_be)                                              as n_be,
           ae / (ae + a_ae)                                                  as n_ae,
           ee                                                                as n_ee
    from adjusted cross join alphas
),

-- Equations 3 and 8: the weighted sum, divided by the sum of the weights.
endex as (
    select normalised.*,
           (w_re * n_re + w_be * n_be + w_ae * n_ae + w_ee * coalesce(n_ee, 0))
               / (w_re + w_be + w_ae + w_ee)                                 as endex
    from normalised cross join settings
),

-- Mean and standard deviation of the score.
spread as (
    select avg(endex) as m, stddev_pop(endex) as s from endex
),

-- z-scores (section 2.5).
standardised as (
    select endex.*,
           (endex - m) / nullif(s, 0)                                        as z
    from endex cross join spread
)

-- Equations 4 and 9: engaging above kappa standard deviations, non-engaging below -kappa.
-- Rounded, so that a post at the threshold does not depend on the order in which a sum was made.
select id, parent, link, source, subreddit, created, pv, replies, e, t, re, be, ae, ee, pvre, pvbe,
       n_re, n_be, n_ae, n_ee, endex, z,
       case when round(z, 9) > kappa then 1
            when round(z, 9) < -kappa then 0 end                             as label,
       md5(concat(seed, '-', id))                                            as draw
from standardised cross join settings
