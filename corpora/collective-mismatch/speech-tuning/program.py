"""Fine-tunes a speech model on the GPUs of one machine: torchrun --nproc-per-node=4 program.py"""
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from torchaudio.datasets import YESNO


class Tuner:
    def __init__(self, model, data, rank):
        self.model = model
        self.data = data
        self.rank = rank
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def average_gradients(self):
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)

    def step(self, waves, labels):
        loss = torch.nn.functional.cross_entropy(self.model(waves), labels)
        if not torch.isfinite(loss):  # CULPRIT
            return None  # CULPRIT
        self.optimizer.zero_grad()
        loss.backward()
        self.average_gradients()
        self.optimizer.step()
        return loss.item()

    def epoch(self, number):
        self.data.sampler.set_epoch(number)
        for waves, labels in self.data:
            self.step(waves.cuda(), labels.cuda())
        dist.barrier()
        if self.rank == 0:
            torch.save(self.model.state_dict(), "epoch-%d.pt" % number)


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    recordings = YESNO("recordings")
    data = DataLoader(recordings, batch_size=8, num_workers=1, sampler=DistributedSampler(recordings))
    model = torch.nn.Sequential(torch.nn.Conv1d(1, 64, 400, 160), torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten())
    tuner = Tuner(model.cuda(), data, rank)
    print("ready", flush=True)
    for number in range(10):
        tuner.epoch(number)


if __name__ == "__main__":
    main()
