"""Looks up fares of an airline's service, several routes at a time, and completes each answer with its conditions."""
import sys

from requests_futures.sessions import FuturesSession


class FareSearch:
    def __init__(self, base, workers):
        self.base = base
        self.session = FuturesSession(max_workers=workers)

    def search(self, route):
        return self.session.get(self.base + "/fares/" + route, hooks={"response": self.complete}, timeout=30)

    def complete(self, response, *args, **kwargs):
        fare = response.json()
        fare["conditions"] = self.conditions(fare["class"])
        response.fare = fare
        return response

    def conditions(self, booking_class):
        answer = self.session.get(self.base + "/conditions/" + booking_class, timeout=30)
        return answer.result().json()  # CULPRIT

    def cheapest(self, routes):
        answers = [self.search(route) for route in routes]
        return min((answer.result().fare for answer in answers), key=lambda fare: fare["price"])


def main():
    search = FareSearch("http://" + sys.argv[1], workers=3)
    print("ready", flush=True)
    print(search.cheapest(["VIE-OSL", "VIE-ARN", "VIE-CPH", "VIE-HEL", "VIE-KEF"]))


if __name__ == "__main__":
    main()
