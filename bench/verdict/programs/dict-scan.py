"""Finds a user by going through a list of records; the fix keeps a dictionary by number."""
import sys

USERS = [{"id": i * 3, "name": f"user{i}", "visits": 0} for i in range(2000)]
BY_ID = {user["id"]: user for user in USERS}


def user_of(number):
    if sys.argv[1] == "after":
        return BY_ID.get(number)
    for user in USERS:
        if user["id"] == number:  # SLOW
            return user
    return None


def visit_all(count):
    for i in range(count):
        user_of(i * 7919 % 2000 * 3)["visits"] += 1


visit_all(48000)
print(sum(user["visits"] for user in USERS), file=sys.stderr)
