/* Functions with frames of several kinds: leaf, saved registers, frame pointer, alloca, aligned stack. */
#include <alloca.h>
volatile long sink;
void use(void*);
__attribute__((noinline)) long leaf(long a){ return a*sink; }
__attribute__((noinline)) long saves(long a,long b){ long x=leaf(a), y=leaf(b); for(long i=0;i<a;i++) y+=leaf(x+i); return x+y+sink; }
__attribute__((noinline)) long large(long a){ volatile char pad[5000]; pad[a&15]=1; return saves(a,pad[0])+1; }
__attribute__((noinline)) long varies(long a){ char*p=alloca(a); use(p); return large(a)+p[0]; }
__attribute__((noinline)) long aligned(long a){ _Alignas(64) char p[128]; use(p); return varies(a)+p[1]; }
__attribute__((noinline)) long both(long a){ _Alignas(64) char p[128]; char*q=alloca(a); use(p); use(q); return aligned(a)+p[1]+q[0]; }
void use(void*p){ *(volatile char*)p=1; }
