// Decodes base64 and sums bytes in large blocks: well made, nothing to mend.
package main

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"os"
)

func main() {
	plain := make([]byte, 3<<20)
	for i := range plain {
		plain[i] = byte(i * 31)
	}
	encoded := make([]byte, base64.StdEncoding.EncodedLen(len(plain)))
	base64.StdEncoding.Encode(encoded, plain)
	decoded := make([]byte, len(plain))
	sum := uint32(0)
	for round := 0; round < 250; round++ {
		n, err := base64.StdEncoding.Decode(decoded, encoded)
		if err != nil {
			panic(err)
		}
		sum ^= crc32.ChecksumIEEE(decoded[:n])
	}
	fmt.Fprintln(os.Stderr, sum)
}
