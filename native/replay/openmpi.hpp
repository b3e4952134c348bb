// Which algorithms Open MPI takes.
#pragma once

#include <string_view>

#include "replay/collectives.hpp"

namespace wulf {

// Rules of a library by its name and version, as it says them itself (MPI_Get_library_version); none of a
// library whose decisions are not known here.
const CollectiveRules &rules_of(std::string_view library);

} // namespace wulf
