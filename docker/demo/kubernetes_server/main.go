// A Kubernetes API server with its etcd in one process, for tests and the demo: no kubelet, no controllers.
package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: apiserver ETCD_FOLDER ETCD_PORT FLAGS_OF_KUBE_APISERVER…")
		os.Exit(2)
	}
	address, _ := url.Parse("http://127.0.0.1:" + os.Args[2])
	peer, _ := url.Parse("http://127.0.0.1:0")
	config := embed.NewConfig()
	config.Dir = os.Args[1]
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*address}, []url.URL{*address}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(60 * time.Second):
		fmt.Fprintln(os.Stderr, "etcd did not start in 60 s")
		os.Exit(1)
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(append(os.Args[3:], "--etcd-servers="+address.String()))
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
