#include "common.h"
// mixed N USER_US: N times { spin USER_US in user mode; 5 x pread 1 MiB from page cache (about 100 us in the kernel) }. Truth: rdtsc around pread.
int main(int a,char**v){int n=a>1?atoi(v[1]):1000,us=a>2?atoi(v[2]):900;static char b[1<<20];char f[]="mixed.tmp";int fd=open(f,O_RDWR|O_CREAT|O_TRUNC,0600);write(fd,b,1<<20);
 uint64_t c[2]={0},k[2]={0};begin();
 for(int i=0;i<n;i++){uint64_t x=__rdtsc();uint64_t w=0;while(w<us*140ull){w++;asm volatile("imul %0,%0":"+r"(x));}c[0]+=0;uint64_t y=__rdtsc();c[0]+=0;for(int j=0;j<5;j++)pread(fd,b,1<<20,0);c[1]+=__rdtsc()-y;k[1]+=5;k[0]++;}
 const char*p[]={"user","pread64"};finish("mixed",2,p,c,k);unlink(f);return 0;}
