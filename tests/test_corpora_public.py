"""The real files: registered sizes, and published figures that depend on how the files are read."""

import functools
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from lib import data, psychology
from lib.data import corpora, storage

CORPORA = storage.registry()["corpora"]
pytestmark = pytest.mark.public
load = functools.cache(corpora.load)  # the tests only read


RATINGS = "comp_analysis/turn_level_ratings_subset/turn_ratings.subset.json"


def near(left, right, digits):
    """Equal as printed with so many digits."""
    return round(float(left), digits) == right


def coefficients(left, right, digits, measures=(pearsonr, spearmanr)):
    """The coefficients as printed with so many digits."""
    return tuple(round(float(measure(left, right).statistic), digits) for measure in measures)


@pytest.mark.parametrize("name", CORPORA)
def test_public_corpus_has_the_registered_size(name):
    corpus = load(name)
    entry = CORPORA[name]
    assert len(corpus.items) == entry["rows"]
    assert corpus.items["system"].nunique() == entry["systems"]
    assert corpus.level == entry["level"]
    if corpus.turns is not None:
        data.validate(corpus.turns)
    assert (corpus.report["read"] == corpus.report["kept"] + corpus.report["excluded"]).all()
    assert data.human_columns(corpus.items) or name == "gpt4_see"


def test_public_tables_have_the_registered_size():
    sizes = [len(data.goemotions(split)) for split in ("train", "dev", "test")]
    assert sizes == [43410, 5426, 5427]
    assert int((data.goemotions("test")["labels"].str.len() > 1).sum()) == 837
    assert len({label for labels in data.goemotions("train")["labels"] for label in labels}) == 28
    assert len(data.dailydialog_pairs()) == 13105


def test_wassa2022_has_five_essays_of_each_author_and_one_personality():
    essays = data.wassa2022()
    assert len(essays) == 1860 and essays["essay"].is_unique
    assert set(essays.groupby("author").size()) == {5} and essays["author"].nunique() == 372
    traits = essays.loc[:, "conscientiousness":"empathic_concern"].columns
    assert len(traits) == 9 and (essays.groupby("author")[traits].nunique() == 1).all(axis=None)
    assert essays.notna().all(axis=None) and essays[traits].stack().between(1, 7).all()
    assert not essays["text"].str.startswith('"').any()
    means = essays[["empathy", "distress", "agreeableness", "empathic_concern"]].mean().round(3)
    assert means.tolist() == [3.7, 3.731, 5.352, 3.773]


def test_public_reddit_counts():
    college = data.reddit_college()
    assert college["subreddit"].value_counts().to_dict() == {
        "CollegeRant": 22825, "Emory": 9567, "CollegeMajors": 4509, "CollegeAdvice": 1402
    }  # fmt: skip
    assert int((college["score"] < 0).sum()) == 770
    assert int(college["body"].isin(["[deleted]", "[removed]"]).sum()) == 629
    assert college["id"].is_unique
    forums, cmv = data.reddit_52_forums(), data.reddit_cmv()
    assert (len(forums), forums["subreddit"].nunique(), len(cmv)) == (45753, 48, 8924)
    assert not forums["subreddit"].isin(["anger", "inceltear", "rage", "roastme"]).any()
    assert (cmv["controversiality"].sum(), cmv["edited"].sum()) == (383, 768)


PAIRS = {
    ("usr_topical", "understandable"): (0.51, 0.51),
    ("usr_topical", "natural"): (0.486, 0.487),
    ("usr_topical", "maintains_context"): (0.557, 0.56),
    ("usr_topical", "engaging"): (0.575, 0.581),
    ("usr_topical", "uses_knowledge"): (0.709, 0.709),
    ("usr_topical", "overall"): (0.71, 0.718),
    ("usr_persona", "understandable"): (0.298, 0.298),
    ("usr_persona", "natural"): (0.472, 0.484),
    ("usr_persona", "maintains_context"): (0.613, 0.612),
    ("usr_persona", "engaging"): (0.429, 0.414),
    ("usr_persona", "uses_knowledge"): (0.812, 0.812),
    ("usr_persona", "overall"): (0.66, 0.658),
}


@pytest.mark.parametrize("name, dimension", PAIRS)
def test_usr_annotators_correlate_as_published(name, dimension):
    ratings = load(name).ratings.query("dimension == @dimension")
    first, second, third = (ratings["rating"].to_numpy()[n::3] for n in range(3))  # file order
    pairs = [(first, second), (first, third), (second, third)]
    means = sum(np.array(coefficients(*pair, 9)) for pair in pairs) / 3
    assert tuple(means.round(3)) == PAIRS[name, dimension]


def test_usr_grade_scores_correlate_as_published():
    turns = load("usr_topical").turns.dropna(subset="score_grade")
    assert len(turns) == 300
    found = coefficients(turns["score_grade"], turns["human_overall"], 4)
    assert found == (0.2002, 0.2168)


UNIEVAL = {
    "naturalness": (0.443666, 0.513986, 0.373973), "coherence": (0.595143, 0.612942, 0.465915),
    "engagingness": (0.55651, 0.604739, 0.455941), "groundedness": (0.536209, 0.574954, 0.451533),
    "understandability": (0.380038, 0.467807, 0.360741), "overall": (0.632796, 0.662583, 0.487272),
}  # fmt: skip


@pytest.mark.parametrize("dimension", UNIEVAL)
def test_unieval_correlates_to_six_decimals(dimension):
    turns = load("unieval_topical").turns
    scores, human = turns[f"score_unieval_{dimension}"], turns[f"human_{dimension}"]
    found = coefficients(scores, human, 6, (pearsonr, spearmanr, kendalltau))
    assert found == UNIEVAL[dimension]


def test_unieval_is_usr_topical():
    ours, theirs = load("usr_topical").turns, load("unieval_topical").turns
    columns = ["system", "dialog", "turn", "context", "response", "reference", "fact"]
    assert ours[columns].to_dict("list") == theirs[columns].to_dict("list")
    means = [table[data.human_columns(table)].to_numpy() for table in (ours, theirs)]
    np.testing.assert_allclose(*means)


def test_fed_turn_row_of_dialevalmetrics():
    turns = load("fed_turn").turns
    aspects = ["interesting", "engaging", "specific", "relevant", "correct",
               "semantically_appropriate", "understandable", "fluent"]  # fmt: skip
    score = turns[[f"score_fed_{aspect}" for aspect in aspects]].mean(axis=1)
    assert coefficients(score, turns["human_overall"], 3) == (0.120, 0.095)


FED = {
    "interesting": (0.279838, 0.312649),
    "engaging": (0.143199, 0.151313),
    "specific": (0.182277, 0.19337),
    "relevant": (0.146903, 0.152544),
}


def without_outlier(ratings):
    """The mean after removing the rating furthest from it, if further than half a deviation."""
    distance = (ratings - ratings.mean()).abs()
    far = distance.max() > ratings.std(ddof=0) / 2
    return (ratings.drop(distance.idxmax()) if far else ratings).mean()


@pytest.mark.parametrize("dimension", FED)
def test_fed_aspects_of_the_replication_to_six_decimals(dimension):
    corpus = load("fed_turn")
    mine = corpus.ratings[corpus.ratings["dimension"] == dimension]
    human = mine.groupby("item")["rating"].apply(without_outlier)
    score = corpus.turns[f"score_fed_{dimension}"]
    assert coefficients(score, human, 6) == FED[dimension]


def test_fed_engaging_has_261_turns():
    turns = load("fed_engaging").turns
    assert turns["human_engaging"].value_counts().to_dict() == {1.0: 217, 0.0: 44}


def test_predictive_engagement_facts():
    better, pred = load("better").turns, load("predeng600").turns
    empty = int((better["response"] == "").sum())
    assert load("better").report.loc[0, "notes"] == f"{empty} are empty and kept" and empty > 0
    generated, human = pred[:300], pred[300:]
    assert generated["reference"].str[0].tolist() == human["response"].tolist()
    assert generated["context"].tolist() == human["context"].tolist()
    assert load("predeng600").ratings.groupby("item").size().eq(3).all()
    assert better["human_engaging"].value_counts().to_dict() == {0.0: 202, 1.0: 95}
    means = pred.groupby("system")["human_engaging"].mean().round(2).to_dict()
    assert means == {"generated": 1.84, "ground_truth": 3.45}
    assert pred["context"].map(tuple).nunique() == 299
    scores = pred["score_pred_en_mean"], pred["human_engaging"]
    assert coefficients(*scores, 3) == (0.393, 0.448)


def test_dstc7_system_means_as_published():
    turns = load("dstc7").turns
    columns = ["human_relevance", "human_informativeness", "human_overall"]
    means = turns.groupby("system")[columns].mean()
    published = {"Human": (3.606, 3.487, 3.547), "Baseline": (2.911, 2.681, 2.796),
                 "Constant": (2.602, 2.322, 2.462), "Random": (2.32, 2.352, 2.336),
                 "TeamB": (2.99, 2.872, 2.931)}  # fmt: skip
    for system, expected in published.items():
        assert means.loc[system].to_list() == pytest.approx(expected, abs=0.00051)
    counts = load("dstc7").ratings.groupby("item").size()
    assert set(counts[turns["system"] == "TeamCE"]) == {12} and set(counts) == {6, 12}


@pytest.mark.parametrize(
    "control, agents, published", [(False, 10, [0.969, 0.985, 0.982]), (True, 11, [0.981])]
)
def test_ji2022_runs_replicate_as_published(control, agents, published):
    dialogs = load("ji2022", quality_control=control).dialogs
    means = dialogs.groupby(["run", "agent"])["human_z_overall"].mean().unstack("run")
    assert len(means) == agents
    found = [pearsonr(means[a], means[b]).statistic for a, b in combinations(means, 2)]
    assert np.round(found, 3).tolist()[: len(published)] == published


def test_gpt4_mean_of_five_runs_on_fed_dialogs_as_published():
    dialogs = load("gpt4_fed").dialogs
    mean = dialogs[[f"score_gpt4_overall_run{n}" for n in range(1, 6)]].mean(axis=1)
    measures = (pearsonr, spearmanr, kendalltau)
    found = coefficients(mean, dialogs["human_overall"], 3, measures)
    assert found == (0.744, 0.725, 0.578)


def test_gpt4_on_reliable_dialogs_as_published():
    dialogs = load("gpt4_reliable").dialogs
    score = dialogs[[f"score_gpt4_overall_run{n}" for n in range(1, 6)]].mean(axis=1)
    rated = dialogs.assign(score=score).dropna(subset="score")
    assert len(rated) == 500 and dialogs["run"].nunique() == 3
    assert load("gpt4_see").dialogs["score_gpt4_coherence_run5"].notna().sum() == 500
    assert load("gpt4_fed").dialogs["human_error_recovery"].isna().any()  # nobody rated it
    assert coefficients(rated["score"], rated["human_z_overall"], 3) == (0.502, 0.516)
    means = rated.groupby("agent")[["score", "human_z_overall"]].mean()
    assert near(spearmanr(means["score"], means["human_z_overall"]).statistic, 0.855, 3)


def test_mean_ratings_equal_those_of_the_annotators():
    """Zhang et al.'s means against ours, matched by context and response."""
    for name in ("usr_topical", "usr_persona", "fed_turn"):
        theirs, mine = load(f"zhang_{name}").turns, load(name).turns
        key = ["context", "response"]
        left = sorted(map(_entry, theirs[key].to_numpy(), theirs["human_overall"]))
        right = sorted(map(_entry, mine[key].to_numpy(), mine["human_overall"]))
        same = [a[0] == b[0] and abs(a[1] - b[1]) < 1e-6 for a, b in zip(left, right, strict=True)]
        assert sum(same) == len(theirs), (name, sum(same))


def _entry(key, value):
    return " ".join(" ".join([*key[0], key[1]]).split()), float(value)


@pytest.mark.parametrize(
    "name, mean, style",
    [
        ("dstc10_persona_clean", 2.9946, 0.0054),
        ("dstc10_topical_clean", 3.3648, 0.0019),
        ("dstc10_dailydialog_gupta", 2.806, -0.001),
    ],
)
def test_pd10_td10_and_gd_fit_style_matching_as_recomputed_from_the_paper(name, mean, style):
    """Adjusted R2; shuffled ratings give 0. Giorgi et al. print .006, .002 and .004."""
    turns = load(name).turns
    human = turns[data.human_columns(turns)[0]]
    assert near(human.mean(), mean, 4)
    matching = psychology.language_style_matching(turns)
    r2 = pearsonr(*np.array([matching, human])[:, matching.notna()]).statistic ** 2
    n = int(matching.notna().sum())
    assert 1 - (1 - r2) * (n - 1) / (n - 2) == pytest.approx(style, abs=0.0005)


def test_gd_is_the_same_in_both_releases():
    turns = load("dstc10_dailydialog_gupta").turns
    texts = data.path("comp_analysis/turn_level_texts/dailydialog-gupta_text.txt")
    lines = [line.split("\t")[1:] for line in storage.read_lines(texts)]
    ratings = storage.read_json(data.path(RATINGS))["dailydialog-gupta"]
    ours = turns["context"] + turns["response"].map(lambda text: [text])
    assert lines == ours.tolist() and ratings == turns["human_overall"].tolist()
    assert turns.groupby("system")["human_overall"].mean().idxmax() == "human"
    assert load("dstc10_dailydialog_gupta").ratings.empty  # they are means of five


def test_dstc10_blocks_are_systems_that_answer_the_same_contexts():
    persona, topical = (load(f"dstc10_{one}_clean").turns for one in ("persona", "topical"))
    sizes = persona.groupby("system", sort=False).size()
    assert sizes.tolist() == [500] * 4 + [329] + [500] * 5
    assert set(topical.groupby("system").size()) == {500} and topical["system"].nunique() == 9
    assert set(topical.groupby("dialog").size()) == {9} and persona["dialog"].nunique() == 500


def test_zhao_means_by_position():
    persona = load("zhao_persona").turns.groupby("system", sort=False)["human_overall"].mean()
    daily = load("zhao_dailydialog").turns.groupby("system", sort=False)["human_overall"].mean()
    assert persona.round(2).tolist() == [4.05, 3.43, 3.56, 3.04, 3.03, 2.0]
    assert daily.round(2).tolist() == [4.42, 3.78, 3.64, 3.5, 2.8, 2.84, 2.88, 2.78, 2.21]


def test_grade_sets_share_contexts_and_count_1200():
    tables = [load(name).turns for name in CORPORA if name.startswith("grade_")]
    assert sum(map(len, tables)) == 1200
    daily = [t for t in tables if t["dialog"].iloc[0].startswith("dailydialog")]
    assert daily[0]["dialog"].tolist() == daily[1]["dialog"].tolist()


@pytest.mark.parametrize("name", [name for name in CORPORA if name.startswith("grade_")])
def test_grade_means_are_the_published_ones(name):
    _, corpus, system = name.split("_", 2)
    file = data.path(f"grade/human_score/{corpus}/{system}/human_score.txt")
    published = [float(line) for line in storage.read_lines(file)]
    assert load(name).turns["human_coherence"].tolist() == pytest.approx(published, abs=1e-4)


def test_every_registered_file_verifies():
    for key in storage.registry()["files"]:
        assert storage.path(key).is_file(), key
