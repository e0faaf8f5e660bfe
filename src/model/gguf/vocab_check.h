// Checks everything that libllama relies on when it reads the vocabulary from the same file.
// libllama aborts the process on some malformed vocabularies.
#pragma once

namespace knap {

class GgufFile;

// Throws knap::Error that names the file and the key when the vocabulary is missing, malformed or
// of a kind that our architectures do not use.
void check_vocabulary(const GgufFile& file);

}  // namespace knap
