// A provider of OpenID Connect for bench/serve/oidc.py: mockoidc, and a second port where the next person to sign in is named.
//
//	provider ISSUER-PORT CONTROL-PORT
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/oauth2-proxy/mockoidc"
)

func main() {
	provider, err := mockoidc.NewServer(nil)
	check(err)
	provider.ClientID, provider.ClientSecret = "plumb", "client-secret"
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	check(err)
	check(provider.Start(listener, nil))
	fmt.Println(provider.Issuer())
	next := func(_ http.ResponseWriter, request *http.Request) {
		name := request.FormValue("name")
		provider.QueueUser(&mockoidc.MockUser{Subject: name, Email: name + "@example.com", EmailVerified: true,
			PreferredUsername: name, Groups: strings.Split(request.FormValue("groups"), ",")})
	}
	check(http.ListenAndServe("127.0.0.1:"+os.Args[2], http.HandlerFunc(next)))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
