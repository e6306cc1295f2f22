"""Workers of thread pools that wait for jobs which still lie in a queue: their own pool's, or that of another one."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ....evidence import Pool, Process, Resource
from ....waitgraph import Agent, Edge
from ...facts.view import View

#: Agents that are followed from one worker to the job that it needs.
_FOLLOWED = 300


class Link(NamedTuple):
    """One worker, and the job in a queue without which it cannot go on."""

    worker: Agent
    wait: Edge  # its own wait
    via: Tuple[Agent, ...]  # tasks and threads between it and whoever waits for the job itself, nearest first
    job: Resource  # the future of the job
    pool: Pool  # whose workers alone could do it


Links = Dict[str, List[Link]]


def stuck_pools(view: View, process: Process) -> List[Tuple[List[Pool], List[Link]]]:
    """Groups of pools no worker of which can go on, because each needs jobs that only workers of the group could do.

    Mostly a group is one pool, whose workers wait for its own queue.
    """
    stuck = [pool for pool in process.pools if pool.threads and all(map(view.graph.stuck, workers(process, pool)))]
    links = {pool.id: _links(view, process, pool, stuck) for pool in stuck}
    reached = {pool.id: _reached(pool.id, links) for pool in stuck}
    groups: List[Tuple[List[Pool], List[Link]]] = []
    told: Set[str] = set()
    for pool in stuck:
        if pool.id in told or pool.id not in reached[pool.id]:
            continue
        group = [p for p in stuck if p.id in reached[pool.id] and pool.id in reached[p.id]]
        ids = {p.id for p in group}
        told |= ids
        groups.append((group, [link for p in group for link in links[p.id] if link.pool.id in ids]))
    return groups


def workers(process: Process, pool: Pool) -> List[Agent]:
    return [Agent(process.pid, tid) for tid in pool.threads]


def _reached(start: str, links: Links) -> Set[str]:
    """The pools on whose queues a pool depends, directly or through others."""
    found: Set[str] = set()
    wave = [start]
    while wave:
        wave = [link.pool.id for ident in wave for link in links.get(ident, ()) if link.pool.id not in found]
        found.update(wave)
    return found


def _links(view: View, process: Process, pool: Pool, pools: Sequence[Pool]) -> List[Link]:
    found = (_link(view, agent, pools) for agent in workers(process, pool))
    return [link for link in found if link is not None]


def _link(view: View, worker: Agent, pools: Sequence[Pool]) -> Optional[Link]:
    """Along those who owe it something, the nearest job in a queue."""
    first = view.graph.blocking(worker)
    ways: List[Tuple[Agent, ...]] = [()]
    seen = {worker}
    while ways and first is not None and len(seen) < _FOLLOWED:
        way = ways.pop(0)
        edge = view.graph.blocking(way[-1] if way else worker)
        resource = view.graph.places.resource(worker.pid, edge.resource) if edge is not None else None
        pool = _queued_in(resource, pools) if resource is not None else None
        if resource is not None and pool is not None:
            return Link(worker, first, way, resource, pool)
        following = [w for w in edge.wakers if w not in seen] if edge is not None and not edge.signals else []
        seen.update(following)
        ways += [(*way, agent) for agent in following]
    return None


def _queued_in(resource: Resource, pools: Sequence[Pool]) -> Optional[Pool]:
    """The pool whose workers, any of them, are all that could finish a future."""
    if resource.kind not in ("future", "async-future") or resource.closed is not True or resource.state == "running":
        return None
    runners = {waker.tid for waker in resource.wakers}
    return next((pool for pool in pools if runners and set(pool.threads) <= runners), None)
