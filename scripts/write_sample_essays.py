"""Write essays.tsv: invented essays of invented authors in the column layout of WASSA 2022.

Each author has a drawn agreeableness (1-7) and empathic concern (1-5). A sentence is taken from
the kind or the blunt list with a probability that rises with agreeableness, and from the caring
or the detached list with one that rises with empathic concern, so that a model can find both.
Run from the repository root: `python -m scripts.write_sample_essays`.
"""

import csv
from pathlib import Path

import numpy as np

KIND = [
    "Thank you to everyone who helped, it was a lovely thing to do.",
    "I agree with most of it and I would be happy to listen to the other side.",
    "We can work this out together if we are patient.",
    "My neighbours were wonderful and I am grateful to them.",
    "I am sure they meant well, so let us give them a chance.",
    "Please tell them that I am glad they asked.",
]
BLUNT = [
    "This is nonsense and somebody should have said so.",
    "I never trust people who talk like that.",
    "They only want attention and I refuse to give it.",
    "What a stupid plan, anyone could have seen it would fail.",
    "I told them they were wrong and I was right.",
    "Nobody does anything properly around here.",
]
CARING = [
    "I felt so sorry for the old man that I could not stop thinking of him.",
    "Her story touched my heart and I wanted to hold her hand.",
    "Those poor children must be so frightened tonight.",
    "It hurts me to see an animal left out in the cold.",
]
DETACHED = [
    "The report gives the numbers and that is enough for me.",
    "It does not concern me, so I read the next page.",
    "Such things happen and I do not lose sleep over them.",
    "I looked at the map and then at the price of the tickets.",
]
PLAIN = [
    "The bridge was closed on Monday.",
    "The article was about a town by the sea.",
    "It rained for most of the week.",
    "There was a photograph of a school at the top of the page.",
    "The meeting took two hours.",
    "The bus stops in front of the library.",
]
COLUMNS = [
    *("message_id", "response_id", "article_id", "empathy", "distress", "essay"),
    *("personality_agreeableness", "iri_empathatic_concern"),
]


def write(path: Path, authors: int = 80, essays: int = 3, seed: int = 22) -> None:
    draw = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(COLUMNS)
        for author in range(authors):
            agreeable = float(np.clip(draw.normal(4.6, 1.2), 1, 7))
            concern = float(np.clip(draw.normal(3.5, 0.8), 1, 5))
            for essay in range(essays):
                lists = [
                    KIND if draw.random() < (agreeable - 1) / 6 else BLUNT
                    for _ in range(2)
                ]
                lists.append(CARING if draw.random() < (concern - 1) / 4 else DETACHED)
                lists += [PLAIN, PLAIN]
                text = " ".join(
                    lists[i][draw.integers(len(lists[i]))] for i in draw.permutation(5)
                )
                row = [f"S_{author:03d}_{essay + 1}", f"S_{author:03d}", essay + 1]
                row += [
                    round(1.5 * concern, 2),
                    round(float(draw.uniform(1, 7)), 2),
                    text,
                ]
                table.writerow([*row, round(2 * agreeable) / 2, round(concern, 3)])


if __name__ == "__main__":
    write(Path(__file__).parents[1] / "data" / "sample" / "essays" / "essays.tsv")
