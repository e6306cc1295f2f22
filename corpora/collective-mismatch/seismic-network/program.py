"""Trains a detector for tremors on three CPU processes, with a validation after every few steps."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = torch.nn.Conv1d(3, 16, 64, 4)
        self.head = torch.nn.Linear(16, 1)

    def forward(self, traces):
        return self.head(self.filters(traces).mean(dim=2)).squeeze(1)


class Validation:
    def __init__(self, rank, traces, labels):
        self.rank = rank
        self.traces = traces
        self.labels = labels

    @torch.no_grad()
    def share(self, model, step):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(self.traces), self.labels)
        summary = [{"step": step, "loss": loss.item()}]
        dist.broadcast_object_list(summary, src=0)  # CULPRIT
        return summary[0]


class Training:
    def __init__(self, rank, model, validation):
        self.rank = rank
        self.model = model
        self.validation = validation
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def average(self, tensor):
        dist.all_reduce(tensor)
        return tensor / dist.get_world_size()

    def step(self, number):
        generator = torch.Generator().manual_seed(number * 10 + self.rank)
        traces = torch.randn(8, 3, 4000, generator=generator)
        loss = self.model(traces).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        for parameter in self.model.parameters():
            parameter.grad = self.average(parameter.grad)
        self.optimizer.step()

    def run(self, steps):
        for number in range(steps):
            self.step(number)
            if number % 50 == 49 and self.rank == 0:  # CULPRIT
                self.validation.share(self.model, number)


def worker(rank, size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29511", rank=rank, world_size=size)
    torch.set_num_threads(1)
    validation = Validation(rank, torch.randn(64, 3, 4000), torch.randint(0, 2, (64,)).float())
    if rank == 0:
        print("ready", flush=True)
    Training(rank, Detector(), validation).run(steps=5000)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(3,), nprocs=3)
