package main
import ("testing";"context";"fmt";"os")
func TestZZProf(t *testing.T){
 ctx:=context.Background()
 r,err:=newRig(ctx,t.TempDir()); if err!=nil {t.Fatal(err)}
 defer r.close()
 w:=belay
 if os.Getenv("BARE")!="" { w=bare }
 for range 6{
 s,err:=r.play(ctx,w,16,16,20); if err!=nil{t.Fatal(err)}
 fmt.Println(w.name,s.wall, s.cpu.worker/320, s.cpu.server/320)
 }
}
