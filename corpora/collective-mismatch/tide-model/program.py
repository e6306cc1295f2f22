"""Computes tides along a coast with MPI. Without arguments it starts the two ranks itself."""
import os
import subprocess
import sys
import sysconfig

HARBOUR = 1


def launcher():
    return os.path.join(sysconfig.get_path("scripts"), "mpiexec")


class Coast:
    def __init__(self, comm, segments):
        self.sums = comm.Dup()
        self.reports = comm.Dup()
        self.rank = comm.Get_rank()
        self.levels = [float(self.rank + n % 5) for n in range(segments)]

    def advance(self, hour):
        self.levels = [level * 0.99 + (hour % 12) * 0.01 for level in self.levels]

    def mean_level(self):
        total = self.sums.allreduce(sum(self.levels))
        return total / (len(self.levels) * self.sums.Get_size())

    def publish(self, hour, mean):
        """The harbour's rank tells the others what it put on the board."""
        report = {"hour": hour, "mean": mean} if self.rank == HARBOUR else None
        report = self.reports.bcast(report, root=HARBOUR)
        return report["hour"]


def storm(rank, hour):
    """Whether this rank's gauge reports a storm."""
    return rank == HARBOUR and hour == 30


def rank_main():
    from mpi4py import MPI

    coast = Coast(MPI.COMM_WORLD, segments=200)
    MPI.COMM_WORLD.Barrier()
    if coast.rank == 0:
        print("ready", flush=True)
    for hour in range(20_000):
        coast.advance(hour)
        mean = coast.mean_level()
        if storm(coast.rank, hour):  # CULPRIT
            continue  # CULPRIT
        coast.publish(hour, mean)
    MPI.COMM_WORLD.Barrier()


def main():
    if "rank" in sys.argv[1:]:
        rank_main()
        return
    command = [launcher(), "-n", "2", sys.executable, "-u", os.path.abspath(__file__), "rank"]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
