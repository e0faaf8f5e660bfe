#include "tools/peer/peer_names.h"

#include <algorithm>

#include "base/text.h"

namespace knap {

bool is_peer(std::string_view name) {
    return std::ranges::find(kPeerNames, name) != kPeerNames.end();
}

std::string peer_names() {
    return join(kPeerNames, "|");
}

}  // namespace knap
