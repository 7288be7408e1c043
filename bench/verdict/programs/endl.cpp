// Ends each line with std::endl, which writes it; the fix ends it with '\n'.
#include <fstream>
#include <iostream>

#ifdef AFTER
#define END '\n'
#else
#define END std::endl
#endif

__attribute__((noipa)) static void export_orders(std::ostream &to, int orders)
{
	for (int i = 0; i < orders; i++)
		to << i << ' ' << i * 7 << END; // SLOW
}

int main()
{
	std::ofstream file("orders.txt");
	export_orders(file, 1200000);
	std::cerr << file.tellp() << '\n';
}
