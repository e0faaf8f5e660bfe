// Running estimates of what passes cost, for the scheduler: how long a pass takes, and how many
// rows of prompts fit into the time that others should wait for them.
//
// A pass is taken to cost what a step of the decoding sessions costs, plus a price for each row of
// a prompt:
//   ms = step + price * (rows of prompts + decoding rows beyond those of a usual step)
// `step` is the running mean of passes of the whole model without prompts. The price moves half of
// the way to what the latest pass says, so it follows rows that get dearer with the context within
// a few passes, and the rows that it allows at most double from one pass to the next. A pass with
// fewer rows of prompts than allowed says less, and moves the price less.
#pragma once

#include <span>

#include "forward/batch.h"

namespace knap {

// A mean in which each value counts `weight` of all before it.
class RunningMean {
  public:
    explicit RunningMean(double weight) : weight_(weight) {}
    double value() const { return value_; }  // 0 before the first value
    void add(double value) {
        value_ = has_value_ ? value_ + weight_ * (value - value_) : value;
        has_value_ = true;
    }

  private:
    double weight_;
    double value_ = 0;
    bool has_value_ = false;
};

struct PassSample {
    int n_decode_rows = 0;
    int n_prompt_rows = 0;
    bool is_whole_model = true;  // every module: a pass that prompts can share
    double ms = 0;
};

// What a pass of these runs, with the rows that it computed, says.
PassSample sample_of(std::span<const RowRun* const> runs, double ms);

class PassTimes {
  public:
    // `target_ms`: what rows of prompts may add to a pass.
    explicit PassTimes(double target_ms);

    void add(const PassSample& sample);
    double mean_ms() const { return pass_ms_.value(); }  // of the latest passes
    int max_prompt_rows() const;                         // at least 1

  private:
    double target_ms_;
    double row_ms_;  // the price of a row of a prompt
    RunningMean pass_ms_;
    RunningMean step_ms_;    // of passes of the whole model without prompts
    RunningMean step_rows_;  // rows of these passes
};

}  // namespace knap
