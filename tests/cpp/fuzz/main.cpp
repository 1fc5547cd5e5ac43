// libFuzzer's entry, for the target SAFECF_TARGET.
#include <stdexcept>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  safecf::fuzz::Input input(data, size);
  try {
    safecf::fuzz::SAFECF_TARGET(input);
  } catch (const std::invalid_argument&) {
    return 0;  // refused, as it should be
  }
  return 0;
}
