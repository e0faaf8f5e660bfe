// The peers: libllama with plain decoding, and with each of llama.cpp's ways to draft that need
// neither a second model nor trained layers. Users of llama.cpp choose these with --spec-type.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace knap {

inline constexpr const char* kPlainPeer = "llama";

// Plain decoding, then llama.cpp's own names for ways to draft.
inline constexpr std::array<std::string_view, 6> kPeerNames{
    kPlainPeer, "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"};

bool is_peer(std::string_view name);
std::string peer_names();  // "llama|ngram-simple|..."

}  // namespace knap
