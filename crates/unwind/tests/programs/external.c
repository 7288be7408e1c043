// A library with functions that are called through the PLT.
int external(int x) { return x ^ 3; }
int external_other(int x) { return external(x) + 1; }
