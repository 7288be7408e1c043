// A program that is started 400 times and looks up 16,000 symbols of a library at each start; the fix links them in.
// Built as a library with -DLIBRARY; the plugin table of the program refers to each function.
#include <cstdio>
#include <cstdlib>
#include <spawn.h>
#include <sys/wait.h>

#define FOUR(m, x) m(x##0) m(x##1) m(x##2) m(x##3)
#define EACH2(m, x) FOUR(m, x##0) FOUR(m, x##1) FOUR(m, x##2) FOUR(m, x##3)
#define EACH3(m, x) EACH2(m, x##0) EACH2(m, x##1) EACH2(m, x##2) EACH2(m, x##3)
#define EACH4(m, x) EACH3(m, x##0) EACH3(m, x##1) EACH3(m, x##2) EACH3(m, x##3)
#define EACH5(m, x) EACH4(m, x##0) EACH4(m, x##1) EACH4(m, x##2) EACH4(m, x##3)
#define EACH6(m, x) EACH5(m, x##0) EACH5(m, x##1) EACH5(m, x##2) EACH5(m, x##3)
#define EACH7(m, x) EACH6(m, x##0) EACH6(m, x##1) EACH6(m, x##2) EACH6(m, x##3)

#define DEFINE(name) int name(int x) { return x + __LINE__; }
#define DECLARE(name) int name(int x);
#define ENTRY(name) name,

#if defined LIBRARY || defined AFTER
EACH7(DEFINE, plugin_function_with_a_long_name_)
#else
EACH7(DECLARE, plugin_function_with_a_long_name_)
#endif

#ifndef LIBRARY
int (*const volatile plugins[])(int) = {EACH7(ENTRY, plugin_function_with_a_long_name_)}; // SLOW
extern char **environ;

int main(int count, char **arguments)
{
	if (count > 1)
		return plugins[std::atoi(arguments[1])](0) < 0;
	for (int i = 0; i < 400; i++) {
		char number[16], *command[] = {arguments[0], number, nullptr};
		std::snprintf(number, sizeof number, "%d", i);
		pid_t child;
		if (posix_spawn(&child, arguments[0], nullptr, nullptr, command, environ))
			return 1;
		waitpid(child, nullptr, 0);
	}
	std::fprintf(stderr, "done\n");
}
#endif
