#include "cli/request.h"

#include "cli/generate/draft_colors.h"
#include "cli/progress.h"

namespace knap {

Result generate(Session& session, const Request& request, const InterruptScope& scope) {
    ProgressBar bar("prompt");
    AnswerOutput* output = request.output;
    Observer observer;
    observer.on_prefill = [&](int done, int total) {
        bar.update(static_cast<double>(done) / total);
        if (done == total) {
            bar.finish();
        }
    };
    observer.is_cancelled = [&] {
        return scope.signal() != 0 || (output != nullptr && output->is_closed());
    };
    if (output != nullptr) {
        observer.on_text = [&](std::string_view text) { output->write(text); };
    }
    observer.on_token = request.on_token;
    if (output != nullptr && request.shows_draft) {
        observer.on_token = [&](const TokenEvent& event) {
            output->set_color(color_of(event.origin));
            if (request.on_token) {
                request.on_token(event);
            }
        };
    }
    Result result = session.generate(request.prompt, request.options, observer);
    if (output != nullptr) {
        output->finish();
    }
    return result;
}

}  // namespace knap
