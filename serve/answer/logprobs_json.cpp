#include "serve/answer/logprobs_json.h"

#include <algorithm>

#include "text/utf8.h"

namespace knap {
namespace {

// JSON has no minus infinity.
double finite(float logprob) {
    return std::max(static_cast<double>(logprob), -9999.0);
}

Json bytes_of(const std::string& piece) {
    Json bytes = Json::array();
    for (const char byte : piece) {
        bytes.push_back(static_cast<unsigned char>(byte));
    }
    return bytes;
}

Json chat_entry(Token token, float logprob, const PieceOf& piece_of) {
    const std::string piece = piece_of(token);
    return {
        {"token", piece}, {"id", token}, {"logprob", finite(logprob)}, {"bytes", bytes_of(piece)}};
}

// OpenAI's name for a token that is no text by itself: "bytes:\xf0\x9f". Such tokens are keys of an
// object, and as text they would all be the replacement character.
std::string name_of(const std::string& piece) {
    if (whole_utf8_length(piece) == piece.size()) {
        return piece;
    }
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string name = "bytes:";
    for (const char byte : piece) {
        const auto bits = static_cast<unsigned char>(byte);
        name += {'\\', 'x', kDigits[bits >> 4], kDigits[bits & 15]};
    }
    return name;
}

// Every byte of a UTF-8 character but the first is 10xxxxxx.
bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

Json chat_logprobs(std::span<const AnswerToken> tokens, const PieceOf& piece_of) {
    Json list = Json::array();
    for (const AnswerToken& token : tokens) {
        Json entry = chat_entry(token.token, token.logprob, piece_of);
        Json top = Json::array();
        for (const TokenLogprob& other : token.top) {
            top.push_back(chat_entry(other.token, other.logprob, piece_of));
        }
        entry["top_logprobs"] = std::move(top);
        list.push_back(std::move(entry));
    }
    return list;
}

Json text_logprobs(std::span<const AnswerToken> tokens,
                   const PieceOf& piece_of,
                   std::size_t& n_characters) {
    Json names = Json::array();
    Json logprobs = Json::array();
    Json tops = Json::array();
    Json offsets = Json::array();
    for (const AnswerToken& token : tokens) {
        const std::string piece = piece_of(token.token);
        Json top = Json::object();
        for (const TokenLogprob& other : token.top) {
            top[name_of(piece_of(other.token))] = finite(other.logprob);
        }
        names.push_back(name_of(piece));
        logprobs.push_back(finite(token.logprob));
        tops.push_back(std::move(top));
        const bool is_within =
            n_characters > 0 && !piece.empty() && continues_character(piece.front());
        offsets.push_back(n_characters - (is_within ? 1 : 0));
        n_characters += piece.size() -
                        static_cast<std::size_t>(std::ranges::count_if(piece, continues_character));
    }
    return {{"tokens", std::move(names)},
            {"token_logprobs", std::move(logprobs)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
}

}  // namespace knap
