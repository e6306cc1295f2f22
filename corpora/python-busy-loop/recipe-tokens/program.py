"""Turn the ingredient lines of recipes into tokens for the shopping list."""
import re

TOKEN = re.compile(  # CULPRIT
    r"\s*(?:(?P<amount>\d+(?:[./]\d+)?)|(?P<unit>(?:kg|g|ml|l|tsp|tbsp|cups?)\b)"
    r"|(?P<word>[A-Za-z][A-Za-z-]*)|(?P<mark>[,()]))?"
)


class Ingredients:
    def __init__(self, line):
        self.line = line
        self.position = 0

    def __iter__(self):
        while self.position < len(self.line):  # CULPRIT
            found = TOKEN.match(self.line, self.position)
            self.position = found.end()
            if found.lastgroup:
                yield found.lastgroup, found.group(found.lastgroup)


class ShoppingList:
    def __init__(self):
        self.items = {}

    def add(self, line):
        amount, unit, words = "1", "", []
        for kind, text in Ingredients(line):
            if kind == "amount":
                amount = text
            elif kind == "unit":
                unit = text
            elif kind == "word":
                words.append(text.lower())
        self.items.setdefault(" ".join(words), []).append((amount, unit))


RECIPE = """\
500 g flour (type 405)
1/2 tsp salt
2 cups milk, lukewarm
1\N{VULGAR FRACTION ONE HALF} tbsp sugar
3 eggs
"""


def main():
    shopping = ShoppingList()
    print("ready", flush=True)
    for line in RECIPE.splitlines():
        shopping.add(line)
    for item, amounts in sorted(shopping.items.items()):
        print(item, amounts)


if __name__ == "__main__":
    main()
