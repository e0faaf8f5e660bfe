// One request under way: the prompt's rows, then round after round until something ends the text.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "knap/types.h"

#include "base/clock.h"
#include "decode/round.h"
#include "decode/round_statistics.h"
#include "runtime/answer_constraint.h"
#include "runtime/answer_text.h"
#include "runtime/prompt_reader.h"
#include "runtime/session_impl.h"
#include "runtime/token_events.h"
#include "sampling/sampler.h"

namespace knap {

class Generation {
  public:
    // Checks the options, before anything changes.
    Generation(Session::Impl& session,
               const GenerateOptions& options,
               const Observer& observer,
               Strategy& strategy);

    // The session's history is the prompt; rows of its first `n_reused` tokens are in the cache.
    Result run(int n_reused);

  private:
    RoundOptions round_options() const;
    // Logits after the prompt; nullopt: cancelled.
    std::optional<std::span<const float>> prefill(int n_reused);
    StopReason decode(std::span<const float> prompt_logits);
    // One round; nullopt to go on, else why the text ends.
    std::optional<StopReason> step();
    Proposal propose();
    std::optional<StopReason> take(const Proposal& proposal, const RoundOutcome& outcome);
    std::optional<StopReason> take_token(const DecidedToken& decided);
    void report_round(const Proposal& proposal, const RoundOutcome& outcome, int n_tokens) const;
    std::optional<StopReason> check_limits() const;
    int n_left() const;  // tokens that request and context allow
    int draft_room() const;
    bool is_cancelled() const { return observer_.is_cancelled && observer_.is_cancelled(); }
    int n_generated() const { return static_cast<int>(result_.tokens.size()); }
    void count_bytes(const Proposal& proposal, const RoundOutcome& outcome);
    double compute_ms() const;  // of the session so far
    void report_timings(double decode_ms, double compute_ms);
    void report_engine();

    Session::Impl& session_;
    const GenerateOptions& options_;
    const Observer& observer_;
    const Tokenizer& tokenizer_;
    std::unique_ptr<AnswerConstraint> constraint_;  // null: the request has no grammar
    Sampler sampler_;
    TokenEvents events_;
    AnswerText answer_;
    Strategy& strategy_;
    Round round_;
    DraftTree forced_;  // a draft of what the grammar forces
    PromptReader reader_;
    RoundStatistics rounds_;
    Stopwatch watch_;  // since the request began
    double search_ms_ = 0;
    double bytes_read_ = 0;
    bool is_row_invariant_ = true;
    std::int64_t reservations_when_warm_ = 0;
    Result result_;
};

}  // namespace knap
