#!/usr/bin/env python3
"""What drafters of token texts draft and what is accepted, computed without an automaton.

    python3 tests/helpers/drafts_by_hand.py FILE.jsonl lookup|suffix [LONGEST]

Prints verifications, drafted tokens and accepted tokens of answers served alone: every verification drafts what followed
the first place where the text's end occurred before, tried from the longest end on. The prompt's pass gives the first token.
"""
import json
import re
import sys

WORD = re.compile(rb" ?[A-Za-z0-9_\x80-\xff]+|[ \t-\r]+|.", re.S)


def tokens(member):
    return WORD.findall(member.encode()) if isinstance(member, str) else member


def first_match(text, most):
    """Place after the first earlier occurrence of the longest end of the text; None: the last token is new."""
    best = None
    for n in range(1, min(most, len(text) - 1) + 1):
        end = text[-n:]
        for i in range(len(text) - n):
            if text[i] == end[0] and text[i : i + n] == end:
                best = i + n
                break
        else:
            break  # a longer end holds this one
    return best


def main():
    most, longest = {"lookup": (3, 10), "suffix": (10**9, 40)}[sys.argv[2]]
    longest = int(sys.argv[3]) if len(sys.argv) > 3 else longest
    verifications = drafted = accepted = 0
    for line in open(sys.argv[1], encoding="utf-8"):
        row = json.loads(line)
        text, answer = tokens(row["context"]), tokens(row["output"])
        done = 1
        while done < len(answer):
            known = text + answer[:done]
            at = first_match(known, most)
            draft = [] if at is None else known[at : at + longest]
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
    print(verifications, drafted, accepted)


if __name__ == "__main__":
    main()
