// Marks what the shared library exports; everything else is hidden.
#pragma once

#if defined(__GNUC__)
#define NEWSCASTER_EXPORT __attribute__((visibility("default")))
#else
#define NEWSCASTER_EXPORT
#endif
