// Package actors is the troupe: one file per actor, its test beside it.
//
// # The tree
//
//	agent                     root: no I/O, no domain logic
//	|- journal                what happened, in order; bounded
//	|- introspect             what every service, interface and node looks like now; answers the HTTP server
//	|- healer                 readiness: who is in sync, who is not and why; heals what stays wrong, by a ladder with budgets
//	|- dataplane  [ordered]
//	|  |- link                connection to VPP
//	|  |- interfaces          frontend/backend interface set, derived from VPP, pods and endpoints; interfaces of pods by command
//	|  |- nat44               renderer of rows: have/want, diff, sweep; with the guard, what is dropped in front of the rows
//	|  |- routes              renderer of routes: refuses or drops what no row serves
//	|  |- audit               asks the renderers for a verification now and then
//	|  |- upkeep  [ordered]   supervisor of those whom nobody needs
//	|  |  |- sessions         frees expired NAT sessions, raises their limit, alarms
//	|- world      [ordered]
//	|  |- registry            desired state: key -> input and generation; membership; epochs of the renderers
//	|  |- nodes               node sync through etcd
//	|  |- services            spawner only
//	|  |  |- default~web ...  one actor per service: input -> view -> renderers
//	|  |- watch               the Kubernetes source; behind everybody whom it tells something
//	|  |- external            external configuration in layers, for nat44
//
// # The flow
//
//	source -> watch -> registry -> service -> nat44, routes -> VPP
//	                      ^           |         |
//	                      |--- Have --|<- Ack --|
//
// Every hop is level-triggered: the message carries the whole latest value of one key with a generation, the receiver acknowledges it, the
// sender repeats it until then. A lost message, a crashed receiver or a crashed sender therefore costs a repetition, never a state.
// Whoever starts asks its source (Pull, PullSpec, RenderUp) and keeps asking until it is answered.
//
// Commands (the interface of a pod, external configuration) are transactions: their steps are all carried out, or taken back in reverse order,
// and they are answered exactly once, with an error when their time is over.
//
// # Ownership
//
// A field of an actor belongs to its Start, Receive and Stop, which never run at the same time. What others may read is sent to them.
// Input and output run in goroutines that the actor owns (Context.Go); they post results back and die with the incarnation that started
// them. Only healer publishes something outside messages: readiness, as one atomic value, so that /readyz answers even when actors hang.
//
// # Shutdown
//
// runtime.System.Shutdown stops the tree from the leaves. Nothing is removed from VPP by it: VPP goes on forwarding.
package actors
