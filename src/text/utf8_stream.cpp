#include "text/utf8_stream.h"

#include "text/utf8.h"

namespace knap {

std::string Utf8Stream::push(std::string_view bytes) {
    cut_ += bytes;
    std::string_view rest = cut_;
    std::string text;
    while (!rest.empty()) {
        const Utf8Sequence sequence = first_utf8_sequence(rest);
        if (sequence.kind == Utf8Kind::cut) {
            break;
        }
        text += sequence.kind == Utf8Kind::whole ? rest.substr(0, sequence.n_bytes)
                                                 : kReplacementCharacter;
        rest.remove_prefix(sequence.n_bytes);
    }
    cut_.erase(0, cut_.size() - rest.size());
    return text;
}

std::string Utf8Stream::finish() {
    std::string text(cut_.empty() ? std::string_view{} : kReplacementCharacter);
    cut_.clear();
    return text;
}

}  // namespace knap
