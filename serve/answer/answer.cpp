#include "serve/answer/answer.h"

namespace knap {

Json AnswerHead::with_choices(Json choices) const {
    return {{"id", id},
            {"object", object},
            {"created", created},
            {"model", model},
            {"system_fingerprint", fingerprint},
            {"choices", std::move(choices)}};
}

std::string finish_reason(const JobEnd& end) {
    const StopReason stop = end.result.stop;
    const bool has_ended =
        end.outcome == JobOutcome::done && (stop == StopReason::eos || stop == StopReason::stop);
    return has_ended ? "stop" : "length";
}

}  // namespace knap
