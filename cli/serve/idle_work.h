// What `knap serve` does while nobody asks: measures the costs of passes on this machine, then
// searches for plans that draft well at the contexts it has seen. Both are saved, as `knap profile`
// saves them, so every machine does it once for a model.
#pragma once

#include "knap/knap.h"

#include "serve/engine/idle_time.h"

namespace knap {

// `engine` must outlive the work.
IdleWork idle_work(Engine& engine);

}  // namespace knap
