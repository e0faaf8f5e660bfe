// `knap worker`: lends this machine's devices to `--rpc` on another machine.
#pragma once

#include <CLI/App.hpp>

#include "tools/worker/worker.h"

namespace knap {

CLI::App* add_worker(CLI::App& root, WorkerConfig& config);
[[noreturn]] void run_worker_command(const WorkerConfig& config);

}  // namespace knap
