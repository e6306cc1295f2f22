"""Trains on pictures of wheat, kept on a network file system, with three CPU processes."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, folder, rank, size):
        self.paths = ["%s/%06d.raw" % (folder, number) for number in range(rank, 90_000, size)]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            data = bytearray(file.read())  # CULPRIT
        return torch.frombuffer(data, dtype=torch.uint8).float()


def train(rank, size, folder):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29512", rank=rank, world_size=size)
    weights = torch.zeros(64 * 64)
    loader = DataLoader(Pictures(folder, rank, size), batch_size=16, num_workers=1)  # CULPRIT
    if rank == 0:
        print("ready", flush=True)
    for batch in loader:
        gradient = (batch - weights).mean(dim=0)
        dist.all_reduce(gradient)
        weights += gradient / size * 0.01
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(train, args=(3, "/data/wheat"), nprocs=3)
