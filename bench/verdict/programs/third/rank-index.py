"""Ranks players by asking the sorted list for each one's index; the fix makes a table of ranks once."""
import sys

AFTER = sys.argv[1] == "after"


def players(count):
    state = 11
    scores = {}
    for number in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        scores[f"player{number}"] = state // 7 % 100000
    return scores


def ranks(scores):
    order = sorted(scores, key=lambda name: (-scores[name], name))
    if AFTER:
        table = {name: number for number, name in enumerate(order)}
        return {name: table[name] + 1 for name in scores}
    return {name: order.index(name) + 1 for name in scores}  # SLOW


def main():
    scores = players(7000)
    total = 0
    for season in range(6):
        placed = ranks(scores)
        total += sum(rank * len(name) for name, rank in placed.items() if rank % 7 == season)
        scores = {name: (score * 31 + season) % 100000 for name, score in scores.items()}
    print(total, file=sys.stderr)


main()
