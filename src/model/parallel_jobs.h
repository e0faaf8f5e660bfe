// Independent jobs spread over the machine's cores, for work that happens once, such as writing a
// model. (The thread pool of the forward pass belongs to the device.)
#pragma once

#include <cstddef>
#include <functional>

namespace knap {

// Runs job(0) ... job(n_jobs - 1), each once, in no promised order, the calling thread working
// along. The first exception ends the run and is thrown again here. `on_progress` may be empty; it
// is called on the calling thread.
void run_parallel(std::size_t n_jobs,
                  const std::function<void(std::size_t)>& job,
                  const std::function<void(double fraction)>& on_progress);

}  // namespace knap
