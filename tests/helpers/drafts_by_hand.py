#!/usr/bin/env python3
"""What drafters of token texts draft and what is accepted, computed without an automaton.

    python3 tests/helpers/drafts_by_hand.py FILE.jsonl lookup|suffix [TRACE.csv]

Prints verifications, drafted tokens and accepted tokens of answers served alone: every verification drafts what followed
the first place where the text's end occurred before, tried from the longest end on. The prompt's pass gives the first token.
With a trace, requests come in its order, which their lengths tell, and a longer end in an answer before is preferred.
"""
import csv
import json
import re
import sys

WORD = re.compile(rb" ?[A-Za-z0-9_\x80-\xff]+|[ \t-\r]+|.", re.S)


CODES = {}  # a character for each token, so that texts of tokens are strings, which are searched fast


def tokens(member):
    words = WORD.findall(member.encode()) if isinstance(member, str) else member
    return "".join(chr(CODES.setdefault(w, len(CODES))) for w in words)


def first_match(text, most):
    """Place after the first earlier occurrence of the longest end of the text; None: the last token is new."""
    best = None
    for n in range(1, min(most, len(text) - 1) + 1):
        i = text.find(text[-n:], 0, len(text) - 1)
        if i < 0:
            break  # a longer end holds this one
        best = i + n
    return best


def match_length(text, at):
    """How many tokens before `at` are the text's last ones."""
    n = 0
    while n < at and text[at - n - 1] == text[-n - 1]:
        n += 1
    return n


def in_answers(answers, text, most):
    """Length of the longest end of the text that an answer has, and what followed it first. One at an answer's very end
    counts as found, with nothing behind it."""
    longest = 0
    draft = ""
    for answer in answers:
        while longest < min(most, len(text)):
            n = longest + 1
            i = answer.find(text[-n:])
            if i < 0:
                break
            longest, draft = n, answer[i + n :]
    return longest, draft


def in_order(rows, trace):
    """Pairs of texts in the order of a trace's rows; no two have the same lengths."""
    by_lengths = {(len(text), len(answer)): (text, answer) for text, answer in rows}
    assert len(by_lengths) == len(rows), "two texts have the same lengths"
    with open(trace, encoding="utf-8") as f:
        requests = csv.DictReader(line for line in f if not line.startswith("#"))
        return [by_lengths[int(r["input_tokens"]), int(r["output_tokens"])] for r in requests]


def main():
    most, longest = {"lookup": (3, 10), "suffix": (10**9, 40)}[sys.argv[2]]
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = [(tokens(r["context"]), tokens(r["output"])) for r in map(json.loads, f)]
    history = len(sys.argv) > 3
    rows = in_order(rows, sys.argv[3]) if history else rows
    verifications = drafted = accepted = 0
    answers = []
    for text, answer in rows:
        done = 1
        while done < len(answer):
            known = text + answer[:done]
            at = first_match(known, most)
            draft = "" if at is None else known[at : at + longest]
            if history:
                n, earlier = in_answers(answers, known, most)
                own = 0 if at is None else min(match_length(known, at), most)
                draft = earlier[:longest] if n > own and earlier else draft
            # No more is drafted than the answer may still have (sd-npu), whose limit is generous here.
            right = 0
            while right < len(draft) and done + right < len(answer) and draft[right] == answer[done + right]:
                right += 1
            emitted = min(right + 1, len(answer) - done)
            if draft:
                verifications += 1
                drafted += len(draft)
                accepted += emitted - 1
            done += emitted
        answers.append(answer)
    print(verifications, drafted, accepted)


if __name__ == "__main__":
    main()
