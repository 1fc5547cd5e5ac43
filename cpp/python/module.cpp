// The Python module: arrays in, arrays out, the GIL released in between.
#include "arrays.hpp"

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leaks
  m.doc() = "The native core: functions on arrays.";
  safecf::python::bind_records(m);
  safecf::python::bind_rows(m);
  safecf::python::bind_dense(m);
  safecf::python::bind_search(m);
  safecf::python::bind_quantile(m);
}
