"""A training loop that does nothing but log: log_loop.py zed|mlflow|wandb CALLS FOLDER. Prints what a call cost."""

import json
import statistics
import sys
import time


def numbers(step):
    return {"loss": 1 / (step + 1), "accuracy": step / 1000, "rate": 0.1, "norm": 2.5}


def of_zed(folder):
    import zed

    return zed.__version__, lambda step: zed.log(step=step, **numbers(step)), lambda: zed._client._metrics.close()


def of_mlflow(folder):
    import logging

    import mlflow

    logging.getLogger("alembic").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.start_run()
    return mlflow.__version__, lambda step: mlflow.log_metrics(numbers(step), step=step), mlflow.end_run


def of_wandb(folder):
    import wandb

    run = wandb.init(project="bench", dir=folder)
    return wandb.__version__, lambda step: run.log(numbers(step), step=step), run.finish


def main():
    tracker, calls, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    version, log, finish = {"zed": of_zed, "mlflow": of_mlflow, "wandb": of_wandb}[tracker](folder)
    log(0)  # what only the first call does
    times = []
    begin, begin_cpu = time.perf_counter_ns(), time.process_time_ns()
    for step in range(1, calls + 1):
        called = time.perf_counter_ns()
        log(step)
        times.append(time.perf_counter_ns() - called)
    finish()
    mean, cpu = (time.perf_counter_ns() - begin) / calls, (time.process_time_ns() - begin_cpu) / calls
    print(json.dumps({"version": version, "p50_us": statistics.median(times) / 1000, "mean_us": mean / 1000,
                      "cpu_us": cpu / 1000}))


main()
