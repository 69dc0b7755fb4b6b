"""A small PyTorch training that loses nothing when it is killed: weights, optimizer, schedule, random
generators and the place in the data are in each checkpoint, so that a run which was killed and resumed
ends with the same bits as one that was not.

    zedctl run --checkpoint-every "1 epoch" -- python3 train_torch.py --epochs 25
"""

import argparse
import os
import sys

import torch

import zed
import zed.torch


def build(seed):
    torch.manual_seed(seed)
    # Dropout and the noise below draw from the generators: a resume that forgets them shows at once.
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    data = torch.randn(256, 16)
    target = (data[:, :4].argmax(dim=1) + 1) % 4
    return model, optimizer, scheduler, data, target


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums in one order
    torch.use_deterministic_algorithms(True)
    zed.parameters(epochs=arguments.epochs, seed=arguments.seed)

    model, optimizer, scheduler, data, target = build(arguments.seed)
    batches = zed.torch.ShuffledBatches(len(data), 32, seed=arguments.seed)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "batches": batches}
    folder = zed.job_dir if zed.job_dir is not None else None
    if zed.resume:
        zed.torch.load_state(folder / f"ckpt/epoch-{zed.resume.epoch}.pt", **parts)

    def save(name):
        return zed.torch.save_state(folder / f"ckpt/{name}.pt", **parts)

    for epoch in zed.epochs(arguments.epochs, save=save):
        total = 0.0
        for batch in batches:
            noisy = data[batch] + 0.1 * torch.randn(len(batch), data.shape[1])
            loss = torch.nn.functional.cross_entropy(model(noisy), target[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        zed.log(step=epoch, epoch=epoch, loss=total / len(batches))
        print(f"epoch {epoch} loss {total / len(batches):.4f}", flush=True)

    if not zed.stopped:
        final = " ".join(value.hex() for value in torch.cat([p.detach().flatten() for p in model.parameters()]).tolist())
        with zed.atomic_write(os.path.join(folder or ".", "final.txt"), "w") as file:
            file.write(final)
    return 0


if __name__ == "__main__":
    sys.exit(main())
