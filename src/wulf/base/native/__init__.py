"""Programs in C and C++, built on this machine from the sources that come along."""
