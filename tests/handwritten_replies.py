# ruff: noqa: E501 - one reply, one line
"""Judge replies written by hand for the parser's tests: (variant, reply, expected).

``expected`` is the mark a careful reader takes from the reply, or None where no mark may be
taken: none is there, more than one could be meant, or it is off the scale. DEVELOPMENT was at
hand while the parser was written. HELD_OUT was written afterwards; its first run found 1 wrong
mark and 4 of 73 readable replies rejected, which were put right. LAST was written after that.
"""

D, DR, S, SR = (
    "detail_without_reference", "detail_with_reference",
    "simple_without_reference", "simple_with_reference",
)  # fmt: skip
OS, OD, G = "original_simple", "original_detail", "dialogue"


def form(overall: str, sep: str = " - ", bullet: str = "") -> str:
    """The six-line form with other marks than the overall one."""
    names = ("humanness", "fluency", "coherency", "consistency", "engagingness")
    lines = [f"{bullet}{name}{sep}{mark}" for name, mark in zip(names, "35244", strict=True)]
    return "\n".join([*lines, f"{bullet}overall{sep}{overall}"])


DEVELOPMENT = [
    # the form as asked
    (D, "- Humanness: 4", 4), (D, "Humanness: 2", 2), (DR, "- Humanness: 5\n", 5),
    (OD, "- Engagingness: 3", 3), (OD, "- Engagingness: 1", 1), (S, form("4"), 4),
    (SR, form("1"), 1), (S, form("5", ": "), 5), (S, form("3", " - ", "- "), 3),
    (OS, "relevance - 5\nspecificity - 3\ninterestingness - 2\nunderstandability - 5\noverall - 4", 4),
    (G, "Overall Dialogue Turn Score - 3\nDialogue Interaction Score - 2\nFinal Score - 3", 3),
    (G, "Overall Dialogue Turn Score - 3.4\nDialogue Interaction Score - 2.5\nFinal Score - 2.9", 2.9),
    # bare numbers
    (D, "4", 4), (D, " 3 \n", 3), (D, "5.", 5), (D, "4/5", 4), (OD, "2", 2), (D, "4.0", 4),
    (S, "4", None), (G, "4", None), (D, "12", None), (D, "0", None), (D, "(4)", 4), (D, '"4"', 4),
    # markdown
    (D, "**Humanness:** 4", 4), (D, "- **Humanness**: 3", 3), (D, "### Humanness: 5", 5),
    (D, "`Humanness: 2`", 2), (D, "```\n- Humanness: 4\n```", 4), (D, "* Humanness: **4**", 4),
    (S, "| Aspect | Mark |\n|---|---|\n| humanness | 3 |\n| overall | 4 |", 4),
    (S, form("**4**", ": ", "- "), 4), (G, "**Final Score - 3.5**", 3.5), (D, "_Humanness_: 4", 4),
    (D, "**4**", 4), (D, "Humanness: ~~3~~ 4", 4), (S, "1. humanness - 3\n2. overall - 5", 5),
    # decimals, comma decimals
    (D, "- Humanness: 3.5", 3.5), (D, "Humanness: 4.25", 4.25), (D, "Humanness: 3,5", None),
    (D, "3,5", None), (S, form("3,5"), None), (G, "Final Score - 3,5", None), (D, "3.5/5", 3.5),
    (D, "Humanness: 4.0", 4), (D, "Humanness: 5.0/5.0", 5), (D, "Humanness: 4.5.", 4.5),
    # ranges and bounds
    (D, "- Humanness: 3-4", None), (D, "Humanness: 3 - 4", None), (D, "Humanness: 3 to 4", None),
    (D, "Humanness: 3 or 4", None), (D, "Humanness: between 3 and 4", None), (D, "3-4", None),
    (D, "Humanness: 3–4", None), (D, "Humanness: 3~4", None), (D, "Humanness: >3", None),
    (D, "Humanness: at least 4", None), (S, form("3-4"), None), (G, "Final Score - 3 to 3.5", None),
    (D, "Humanness: 3 -> 4", None), (D, "Humanness: <4", None), (D, "3 to 4", None),
    # echoes of the form
    (D, "- Humanness:", None), (D, "- Humanness: x", None), (D, "Humanness (1-5)", None),
    (D, "Humanness (1-5) Could a person have written this message?", None),
    (S, form("x"), None), (D, "- Humanness: [1-5]", None), (D, "- Humanness: 1-5", None),
    (G, "Final Score - x", None), (D, "Evaluation Form (scores ONLY):\n- Humanness:", None),
    (D, "Evaluation Form (scores ONLY):\n- Humanness: 4", 4), (D, "Humanness (1-5): 4", 4),
    (D, "Humanness [1-5] - 3", 3), (D, "Humanness score (1 to 5): 2", 2),
    (D, "- 1 (very bad): the message is muddled.\n- 5 (very good): a person.", None),
    (S, "Output Format:\n" + form("x") + "\n\nYour Response:\n" + form("4"), 4),
    (D, "Choose the mark for humanness, from 1 to 5, that the criteria call for.", None),
    # explanations before and after
    (D, "- Humanness: 4\n\nThe reply picks up the question and adds a detail of its own.", 4),
    (D, "The reply answers the question, but it is stiff.\n\n- Humanness: 3", 3),
    (D, "Humanness: 4 - it sounds like a friend talking.", 4),
    (D, "Humanness: 2 because it ignores the last question.", 2),
    (D, "4 - natural and warm", 4), (D, "4\n\nIt sounds natural.", 4), (D, "4 (fair enough)", 4),
    (D, "Humanness: 4 (fair enough)", 4), (D, "Humanness: 5, a very natural line.", 5),
    (D, "She mentions 3 dogs and 2 cats, which fits.\nHumanness: 4", 4),
    (D, "Humanness: 4\nThere are 2 small slips in 15 words.", 4),
    (S, form("4") + "\n\nOverall, the 2 sentences fit together.", 4),
    (D, "Step 1: I read the chat.\nStep 2: the mark.\n- Humanness: 3\nStep 3: it is flat.", 3),
    (G, "Turn 1 and turn 5 repeat themselves.\nOverall Dialogue Turn Score - 4.2\n"
        "Dialogue Interaction Score - 2\nFinal Score - 4.2", 4.2),
    (D, "Reason: polite but generic. Score: 3", 3), (D, "Score: 3", 3), (D, "Rating: 4/5", 4),
    (D, "My rating is 4.", 4), (D, "Final score: 2", 2),
    # sentences
    (D, "I would rate the humanness of this response as 4.", 4),
    (D, "I would rate the humanness of this response as 4 out of 5.", 4),
    (D, "I give it a 4 for humanness.", 4), (D, "The humanness score is 3.", 3),
    (D, "Humanness is 5.", 5), (D, "I'd score this 2 out of 5 on humanness.", 2),
    (D, "The humanness is not 4.", None), (D, "If it were shorter, humanness would be 5.", None),
    (D, "I think the response is human enough.", None), (D, "Humanness is high.", None),
    # several values
    (D, "- Humanness: 3\nOn reflection:\n- Humanness: 4", None),
    (D, "- Humanness: 4\n- Humanness: 4", 4), (D, "Humanness: 4, 5", None),
    (S, "overall - 3\noverall - 4", None), (G, "Final Score - 3\nFinal Score - 4", None),
    (D, "3\n4\n5", None), (D, "4 4", None), (D, "1. It is fine.\n2. It is short.", None),
    (D, "Response A: Humanness: 2\nResponse B: Humanness: 5", None),
    # one line
    (S, "humanness - 3, fluency - 5, coherency - 2, consistency - 4, engagingness - 4, overall - 4", 4),
    (S, "humanness: 3; fluency: 5; overall: 2", 2), (S, "humanness 3 fluency 5 overall 4", 4),
    (S, '{"humanness": 3, "fluency": 5, "overall": 4}', 4), (D, '{"humanness": 4}', 4),
    (D, '```json\n{"Humanness": "4"}\n```', 4), (D, "Humanness = 4", 4), (D, "Humanness → 4", 4),
    (G, '{"Overall Dialogue Turn Score": 3, "Dialogue Interaction Score": 2, "Final Score": 2.5}', 2.5),
    # off the scale, other scales
    (D, "- Humanness: 6", None), (D, "- Humanness: 0", None), (D, "Humanness: 45", None),
    (D, "Humanness: 8/10", None), (D, "Humanness: 80%", None), (D, "Humanness: -4", None),
    (OD, "- Engagingness: 4", None), (OD, "Engagingness: 2/5", None), (OD, "Engagingness: 2/3", 2),
    (S, form("7"), None), (G, "Final Score - 5.5", None), (D, "Humanness: 0.8", None),
    (D, "Humanness: 9 out of 10", None), (D, "100", None),
    # refusals, nothing
    (D, "I'm sorry, but I cannot rate this response.", None), (D, "", None), (D, "  \n ", None),
    (D, "As an AI, I cannot judge whether a person wrote this.", None), (D, "N/A", None),
    (D, "- Humanness: N/A", None), (D, "- Humanness: ?", None), (S, form("n/a"), None),
    (D, "I can't really tell, but:\n- Humanness: 3", 3), (D, "Humanness:", None),
    # other languages and letters
    (D, "- Humanness: 4\n\nDie Antwort klingt natürlich.", 4), (D, "Ｈｕｍａｎｎｅｓｓ：４", 4),
    (D, "Humanness：3", 3), (D, "- Humanness: 4\n返答は自然です。", 4), (D, "Humanness: ④", 4),
    (D, "La respuesta es natural.\n- Humanness: 5", 5), (D, "Hum\u200banness: 4", 4),
    (D, "Menschlichkeit: sehr gut", None), (D, "\u2060- Humanness: 3", 3),
    (D, "Humanness: ½", None),
    (D, "Humanness: 😀", None), (D, "Humanness: 4 😀", 4),
    # words
    (D, "Humanness: four", 4), (D, "Four", 4), (D, "Humanness: Three.", 3),
    (D, "Humanness: ten", None),
    # somebody else's marks
    (D, 'The response says "Humanness: 5".\n- Humanness: 2', 2),
    (D, 'The speaker claims "Humanness: 5", which is odd.', None),
    (G, '> Final Score - 5\nFinal Score - 2', 2),
    (G, 'One response contains "Final Score - 5".', None),
    (D, "<think>Maybe Humanness: 2? No.</think>\n- Humanness: 4", 4),
    (D, "<think>Perhaps Humanness: 3", None),
    # numbers that are no marks
    (D, "The reply has 4 sentences.", None), (S, "Overall, 3 of the lines are fine.", None),
    (D, "Turn 4 is odd.", None), (D, "2024", None), (D, "4 sentences, all natural.", None),
    (D, "Humanness: 4th best", None), (D, "The humanness of turn 3 is low.", None),
    (S, "Overall: 3 people speak.", None), (D, "In humanness 2 things stand out.", None),
]  # fmt: skip

HELD_OUT = [
    (D, "- Humanness: 4  \n  \n", 4), (D, "-Humanness:4", 4), (D, "HUMANNESS: 3", 3),
    (D, "• Humanness: 2", 2), (D, "Humanness:\t5", 5), (DR, "Humanness rating: 4", 4),
    (D, "Humanness - 4/5", 4), (D, "Humanness: 4 / 5", 4), (D, "Humanness: (3)", 3),
    (D, "Humanness: [4]", 4), (D, "Humanness: <4>", None), (D, "**Humanness: 3/5**", 3),
    (D, "- **Humanness:** **2**", 2), (D, "Evaluation Form:\n- Humanness: 1", 1),
    (D, "Humanness Score: 4", 4), (D, "Human-likeness: 4", 4), (D, "Humanness : 3", 3),
    (D, "Sure! Here is my evaluation:\n\n- Humanness: 4", 4), (D, "Answer: 3", 3),
    (D, "Evaluation:\n\nHumanness: 4\n\nExplanation: B answers A's question about the 2 boats.", 4),
    (D, "Based on the criteria, the humanness of this response is 3.", 3),
    (D, "The humanness rating for this response is 4 out of 5.", 4),
    (D, "I rate this response 3 for humanness.", 3), (D, "Humanness gets a 2.", 2),
    (D, "I would give this response a score of 4 for its humanness.", 4),
    (D, "On a scale of 1 to 5, I rate the humanness as 4.", 4),
    (D, "On a scale of 1-5, the response is fairly human.", None),
    (D, "A score of 4 (fair enough) means it comes some way towards a person.", None),
    (D, "Humanness: 3.5 (between neither and fair enough)", 3.5), (D, "Humanness: 2.75", 2.75),
    (D, "Humanness: 4,0", None), (D, "Humanness: 4;5", None), (D, "Humanness: 3/4", None),
    (D, "Humanness: 2-3 (bad to neither)", None), (D, "Humanness: 4 to 5, leaning 5", None),
    (D, "Humanness: 4 or maybe 5", None), (D, "Humanness: somewhere around 3", None),
    (D, "Humanness: 3 and 4", None), (D, "Humanness: 5/4", None), (D, "Humanness: 4+", None),
    (D, "Humanness: 4-", None), (D, "Humanness: ~4", None), (D, "Humanness: 1 - 5", None),
    (D, "Humanness: five", 5), (D, "Humanness: Five out of five", 5), (D, "Humanness: 10", None),
    (D, "Humanness: 5.5", None), (D, "Humanness: 400", None), (D, "Humanness: 4 out of 10", None),
    (D, "Humanness: 75/100", None), (D, "Humanness: _", None), (D, "Humanness: [your score]", None),
    (D, "Humanness: <score>", None), (D, "{humanness: 4}", 4), (D, "humanness=4", 4),
    (D, '{"humanness": null}', None), (D, '{"humanness": 4, "reason": "3 good points"}', 4),
    (D, '{"score": 4}', 4), (D, "Humanness: 4\nHumanness: 2", None), (D, "5\n5", None),
    (D, "Humanness (1-5): 3\nEngagingness (1-5): 5", 3), (D, "Fluency: 5\nHumanness: 2", 2),
    (D, "Fluency: 5", None), (D, "Coherence: 4\nRelevance: 3", None), (D, "Score - 2", 2),
    (D, "The final score is 4.", 4), (D, "Final rating: 4 out of 5", 4), (D, "[4]", 4),
    (D, "4: the line is warm.", 4), (D, "4, because it asks back.", 4), (D, "4 out of 5", 4),
    (D, "4 out of 5 would be too kind, 3 it is.", None), (D, "5 words only.", None),
    (D, "3 of the 4 facts fit.", None), (D, "No score can be given.", None),
    (D, "I must decline to rate this conversation.", None), (D, "Error", None),
    (D, "The previous response had humanness 2; this one is better.", None),
    (D, "Humanness: the response is natural (4 words, 2 facts).", None),
    (D, "It asks 2 questions.\n\n**Humanness**: 4\n\nIt has 1 typo.", 4),
    (D, "Humanness: 4.\nReason: A asked 2 things, B answered 1.", 4),
    (D, "1. Read the chat: done.\n2. Mark: see below.\n- Humanness: 4", 4),
    (D, "- Humanit\u00e9 : 4", None), (D, "人間らしさ: 4", None), (D, "- Humanness: ４", 4),
    (D, "Оценка: 4", None), (D, "Humanness: 4 点", 4), (D, "- Humanness\u00a0: 4", 4),
    (S, form("2", " – "), 2), (S, form("4", "-"), 4), (S, form("3", " : ", "* "), 3),
    (S, form("5/5", ": "), 5), (S, form("4 (good)", ": "), 4), (S, form("4.5"), 4.5),
    (S, form("six"), None), (S, form(""), None), (S, form("4 or 5"), None), (S, form("-"), None),
    (S, form("4").replace("overall", "Overall quality"), 4), (S, form("4").title(), 4),
    (S, "humanness - 4\nfluency - 5", None), (S, "3\n5\n2\n4\n4\n4", None),
    (S, form("2").replace("\n", " | "), 2), (S, "The overall quality of the response is 4.", 4),
    (S, "Overall I liked it. 4 of 5 lines are good.", None), (S, "I'd say overall - 3", 3),
    (S, "overall - 3 (fluency alone would be 5)", 3), (S, form("4").replace(" - ", ": **") , 4),
    (OS, "relevance: 5, specificity: 4, interestingness: 3, understandability: 5, overall: 4", 4),
    (OS, "relevance - 4\nspecificity - 4", None), (OD, "Engagingness: 2 (somewhat interesting)", 2),
    (OD, "- Engagingness: 3\n\nIt brings in a fact.", 3), (OD, "Engagingness (1-3): 1", 1),
    (OD, "Engagingness: 5", None), (OD, "Engagingness: 2.5", 2.5),
    (OD, "I find it engaging.", None),
    (G, "Overall Dialogue Turn Score: 4.14\nDialogue Interaction Score: 3\nFinal Score: 4.14", 4.14),
    (G, "1. Overall Dialogue Turn Score - 3\n2. Dialogue Interaction Score - 2\n3. Final Score - 2.5", 2.5),
    (G, "Overall Dialogue Turn Score - 3\nDialogue Interaction Score - 2", None),
    (G, "Final Score: between 3 and 4", None), (G, "Final Score = (3 + 2) / 2 = 2.5", None),
    (G, "The Final Score is 3.5.", 3.5), (G, 'The "Final Score" is 4.', 4), (G, "Final - 4", None),
    (G, "**Overall Dialogue Turn Score - 4**\n**Dialogue Interaction Score - 2**\n**Final Score - 3**", 3),
    (G, "Turn 1 Score - 4\nTurn 2 Score - 3\nFinal Score - 3.6", 3.6), (G, "Final Score - 0", None),
    (G, "Final Score - 4 (I disregard the interaction score of 2)", 4),
]  # fmt: skip

LAST = [
    (D, "Here's my assessment.\n\n**Humanness:** 3/5\n\nThe reply is fine but flat.", 3),
    (D, "- Humanness: 4\n- Reason: warm tone, 1 follow-up question", 4),
    (D, "-  humanness  -  2", 2),
    (D, "Humanness: 4 (the fact about the 2 boats is used well)", 4), (D, "Humanness: it's a 4", 4),
    (D, "Humanness: I'd say 4", None), (D, "My humanness score would be 3.", 3),
    (D, "The response deserves a 2 for humanness, since it repeats itself.", 2),
    (D, "For humanness I give a 5.", 5), (D, "I assign a humanness score of 4.", 4),
    (D, "Assigned score: 4", None), (D, "It scores 4 on humanness.", 4), (D, "Rating = 2", 2),
    (D, "Compared with a humanness of 2 last time, this is 4.", None),
    (D, "A humanness of 1 would mean it is muddled; this one is fair.", None),
    (D, "Humanness would be 5 if it were shorter.", None), (D, "Humanness can't be 5.", None),
    (D, "Humanness: not sure", None), (D, "Humanness: low (2)", None), (D, "Humanness: 2.", 2),
    (D, "Humanness: 3!", 3), (D, "Humanness: 3 :)", 3), (D, "Humanness: 3?", None),
    (D, "# Humanness\n\n4", 4), (D, "Humanness\n4", 4), (D, "Humanness:\n- 4", 4),
    (D, "Humanness:\n3-4", None), (D, "Humanness:\n1. muddled", None), (D, "HUMANNESS = 4 / 5.", 4),
    (D, "\tHumanness: 4\t", 4), (D, "Humanness: 4\r\nThe line is good.\r\n", 4), (D, "04", 4),
    (D, "Humanness: 4\\n", None), (D, "Humanness: 1e1", None), (D, "Humanness: 4x", None),
    (D, "Final answer: 4", 4), (D, "The answer is 4", 4), (D, "Humanness: 3.0", 3),
    (D, "4 stars", 4),
    (D, "Non-humanness: 4", None), (D, "Dehumanness 4", None), (D, "Version 4", None),
    (S, form("4") + "\n\nExplanation: overall, the 3 points fit.", 4), (S, form("3").upper(), 3),
    (S, "```\n" + form("4", ": ") + "\n```", 4), (S, form("2", " = "), 2), (S, form("N/A"), None),
    (S, form("1-5"), None), (S, "Overall: good", None), (S, "overall -", None),
    (S, "humanness: 4/5 | overall: 3/5", 3), (S, "Overall rating: 4", 4), (S, "overall - 4.", 4),
    (S, "overall - four", 4), (S, "My overall score for the response is 2.", 2),
    (G, "Final Score - 3.5/5", 3.5), (G, "Final Score: 3 (overall 3, interaction 2)", 3),
    (G, "Final Score - 3.50", 3.5), (G, "Final Score\n3.5", 3.5), (G, "final score - 5\n", 5),
    (G, "Final Score - 4 -> 3", None), (G, "The Final Score should be below 4.", None),
    (OD, "- Engagingness: 2 out of 3", 2), (OD, "Engagingness: three", 3), (OD, "0", None),
]  # fmt: skip
