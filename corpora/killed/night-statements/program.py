"""Computes the month's statements for all accounts of a savings bank, at night, in one go."""
import hashlib


def transactions(account, days):
    cents = account * 31 % 977
    for day in range(1, days + 1):
        cents = (cents * 48271 + day) % 100003
        yield day, cents - 50000


def statement(account):
    balance, lines = 0, []
    for day, cents in transactions(account, 31):
        balance += cents
        lines.append("%02d %10d %12d" % (day, cents, balance))
    return "\n".join(lines), balance


def main():
    accounts = 40000000
    seal = hashlib.sha256()
    total = 0
    print("ready", flush=True)
    for account in range(accounts):  # CULPRIT
        text, balance = statement(account)  # CULPRIT
        seal.update(text.encode())
        total += balance
    print("%d accounts, %d cents, %s" % (accounts, total, seal.hexdigest()))


if __name__ == "__main__":
    main()
