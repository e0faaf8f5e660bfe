// Runs independent jobs on all cores, for one-time work such as writing a model. (The thread pool
// of the forward pass belongs to the device.)
#pragma once

#include <cstddef>
#include <functional>

namespace knap {

// Runs job(0) ... job(n_jobs - 1) once each, in any order; the calling thread takes part. The first
// exception stops the run and is rethrown here. `on_progress` may be empty and is called on the
// calling thread.
void run_parallel(std::size_t n_jobs,
                  const std::function<void(std::size_t)>& job,
                  const std::function<void(double fraction)>& on_progress);

}  // namespace knap
