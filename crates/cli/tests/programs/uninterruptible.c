// Waits in the kernel so that nothing but its end can wake it: for a child that does not exec.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((noinline)) static int innermost(volatile char *there) {
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    return *there;
}

__attribute__((noinline)) static int deeper(int left) {
    volatile char room[300] = {0};
    return left ? deeper(left - 1) + room[left] : innermost(room);
}

int main(void) { return deeper(3); }
