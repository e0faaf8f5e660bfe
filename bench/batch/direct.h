// What does the scheduler cost a session that is alone? Steps of plain decoding through it and
// straight through the pipeline take turns, on two sequences with the same text.
#pragma once

#include <cstdio>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bench/batch/prompts.h"
#include "bench/batch/ratios.h"
#include "bench/batch/rig.h"
#include "bench/batch/settings.h"
#include "bench/bench_json.h"
#include "decode/advance.h"
#include "forward/direct_runner.h"
#include "kv/sequence.h"

namespace knap::bench {

// A text that grows by a token a step.
class SteppedText {
  public:
    SteppedText(Engine& engine, PassRunner& runner, const Prompt& prompt)
        : sequence_(impl_of(engine).pipeline().memory(), engine.config().n_ctx),
          forward_(impl_of(engine).pipeline(), runner, sequence_),
          text_(prompt) {
        advance(forward_, sequence_, text_);
    }

    // The time of `n` steps, each with the same token: its choice is beside the point.
    double step_ms(int n) {
        const Stopwatch watch;
        for (int i = 0; i < n; ++i) {
            text_.push_back(text_.front());
            advance(forward_, sequence_, text_);
        }
        return watch.elapsed_ms() / n;
    }

  private:
    Sequence sequence_;
    Forward forward_;
    Prompt text_;
};

inline void measure_direct(BatchRig& rig,
                           BatchPrompts& prompts,
                           const BatchSettings& settings,
                           BenchJson& json) {
    constexpr int kSteps = 8;
    constexpr int kTurns = 24;
    Engine& engine = rig.load(context_for(settings.longest + (kTurns + 1) * kSteps), 2);
    Scheduler& scheduler = impl_of(engine).passes();
    const Scheduler::Client client(scheduler);
    DirectRunner runner(impl_of(engine).pipeline());
    const Prompt prompt = prompts.random(settings.longest);
    SteppedText scheduled(engine, scheduler, prompt);
    SteppedText direct(engine, runner, prompt);
    scheduled.step_ms(kSteps);
    direct.step_ms(kSteps);
    std::vector<double> scheduled_ms;
    std::vector<double> direct_ms;
    for (int turn = 1; turn < kTurns; ++turn) {
        scheduled_ms.push_back(scheduled.step_ms(kSteps));
        direct_ms.push_back(direct.step_ms(kSteps));
    }
    const std::vector<double> ratios = ratios_of(direct_ms, scheduled_ms);
    std::printf(
        "\nOne session: speed of steps through the scheduler over that of direct passes: %s "
        "(median [quartiles] of %zu turns of %d steps)\n",
        quartile_text(ratios, 3).c_str(), ratios.size(), kSteps);
    std::fflush(stdout);
    json.add_row({{"question", "direct"}},
                 {{"scheduled", {}, scheduled_ms}, {"direct", {}, direct_ms}}, 1);
}

}  // namespace knap::bench
