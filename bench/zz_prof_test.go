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
func TestZZSlope(t *testing.T){
 ctx:=context.Background()
 r,err:=newRig(ctx,t.TempDir()); if err!=nil {t.Fatal(err)}
 defer r.close()
 for range 3 {
 for _,w:=range []workload{bare,belay}{
 a,err:=r.play(ctx,w,16,8,4); if err!=nil{t.Fatal(err)}
 b,err:=r.play(ctx,w,16,8,34); if err!=nil{t.Fatal(err)}
 n:=16.0
 f:=func(x,y float64) string { sl:=(y-x)/30; return fmt.Sprintf("%.2f ms/step + %.2f ms/task", sl/n*1000, (x-4*sl)/n*1000) }
 fmt.Println(w.name,"worker",f(a.cpu.worker.Seconds(),b.cpu.worker.Seconds()),"server",f(a.cpu.server.Seconds(),b.cpu.server.Seconds()), (a.cpu.others+b.cpu.others).Seconds()/(a.wall+b.wall).Seconds())
 }}
}
