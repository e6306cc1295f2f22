"""The object graph: ``referrers`` (who refers to an object), ``owners`` (whose a place in memory is), ``reachability``
(who can still reach it), ``variablesearch`` (what a program's variables lead to)."""
