"""Splits a template into text and fields."""


def fields(template):
    found = []
    position = 0
    while position < len(template):  # CULPRIT
        opening = template.find("{", position)
        if opening < 0:
            position = len(template)
            continue
        closing = template.find("}", opening)
        if closing < 0:
            position = opening
        else:
            found.append(template[opening + 1:closing])
            position = closing + 1
    return found


print(fields("dear {name},"))
print("ready", flush=True)
print(fields("dear {name}, your {item is on its way"))
