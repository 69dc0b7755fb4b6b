// Certificates are the affair of whoever holds the issuing key: the program around this machine
// answers these operations itself where it has one. What gets here has come to a fleet without.

#include "controller/operations/handlers.hpp"

namespace zed::controller {
namespace {

void refuse_without_authority(const Asked& asked) {
  asked.refuse(ErrorCode::unsupported, "this fleet has no certificate authority",
               "zed-controller init makes one (docs/security.md)");
}

}  // namespace

void handle(const Asked& asked, const api::CreateToken&) {
  refuse_without_authority(asked);
}
void handle(const Asked& asked, const api::ListTokens&) {
  refuse_without_authority(asked);
}

}  // namespace zed::controller
