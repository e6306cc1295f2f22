"""Saved filters of a ticket system, compiled from what people type into the search box."""
import sys

from pyparsing import Keyword, QuotedString, Word, alphas, infixNotation, nums, oneOf, opAssoc


def grammar():
    field = Word(alphas, alphas + "_")
    value = QuotedString('"') | Word(nums) | field
    return infixNotation(  # CULPRIT
        value,
        [
            (oneOf("* /"), 2, opAssoc.LEFT),
            (oneOf("+ -"), 2, opAssoc.LEFT),
            (oneOf("= != < > <= >= ~"), 2, opAssoc.LEFT),
            (Keyword("not"), 1, opAssoc.RIGHT),
            (Keyword("and"), 2, opAssoc.LEFT),
            (Keyword("or"), 2, opAssoc.LEFT),
        ],
    )


class Filters:
    def __init__(self):
        self.grammar = grammar()
        self.saved = {}

    def save(self, name, text):
        self.saved[name] = self.grammar.parseString(text, parseAll=True).asList()  # CULPRIT


TYPED = {
    "mine": 'owner = "me"',
    "late": "age > 14",
    "triage": '((((((((((state = "new") and (age > 2))) or (((priority > (3 + 1))))))))))) and (not (owner = "me"))',
}


def main():
    sys.setrecursionlimit(3000)
    filters = Filters()
    print("ready", flush=True)
    for name, text in TYPED.items():
        filters.save(name, text)
    print(sorted(filters.saved))


if __name__ == "__main__":
    main()
